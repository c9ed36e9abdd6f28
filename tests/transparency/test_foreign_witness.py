"""A witness built on Go's packages cosigns the ledger of a running service, and another one is away."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from signals_feed.ledger.ledger import signer
from tests.client import Server
from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port
from tests.signals_feed.published_signals import make_published
from transparency.checkpoints import Checkpoint, Note, WitnessAddress
from transparency.keyring import keyring
from transparency.keys import KeyType, SigningKey
from transparency.witnesses import witnesses

from .foreign_log import foreign_witness
from .ledgers import NOON

pytestmark = [
    pytest.mark.served,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("known_file"),
]


def test_foreign_witness_cosigns_what_is_published_while_another_is_away(
    tmp_path: Path, settings: Any
) -> None:
    key, away = (SigningKey.make(f"{name}.example", KeyType.COSIGNATURE) for name in ("go", "away"))
    signer.sign(NOON)
    (log,) = keyring.signing_keys(NOON)
    with foreign_witness(tmp_path, key.secret_text(), str(log.verifier)) as url:
        settings.WITNESSES = [
            WitnessAddress(away.verifier, f"http://127.0.0.1:{free_port()}"),
            WitnessAddress(key.verifier, url),
        ]
        with Server() as server:
            for size in (1, 2, 3):
                make_published()
                wait_until(partial(is_cosigned, server, size, key, away))
            wait_until(lambda: [bool(link.fault) for link in witnesses.links] == [True, False])


def is_cosigned(server: Server, size: int, by: SigningKey, away: SigningKey) -> bool:
    answer = httpx.get(f"{server.url}/ledger/checkpoint", timeout=PATIENCE_S)
    note = Note.read(answer.content)
    signers = set(note.signed_by((by.verifier, away.verifier)))
    return Checkpoint.read(note.text).size == size and signers == {by.verifier}
