"""What anybody may ask of the log over HTTP."""

from __future__ import annotations

import pytest
from django.test import Client

from signals_feed.ledger.ledger import LedgerEntry, signer
from tests.signals_feed.published_signals import ASK, BID, close_at, make_published
from transparency import merkle
from transparency.checkpoints import Checkpoint, Note, read_hash
from transparency.keyring import keyring
from transparency.keys import VerifierKey
from transparency.models import LogKey

from . import naive
from .ledgers import NOON, after

pytestmark = [pytest.mark.django_db, pytest.mark.services, pytest.mark.usefixtures("known_file")]


def get(path: str, status: int = 200) -> str:
    answer = Client().get(path)
    assert answer.status_code == status
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    return answer.content.decode()


def signed_ledger() -> list[bytes]:
    """The texts of five entries, of which the first three were signed, and then all."""
    signals = [make_published() for _ in range(3)]
    signer.sign(NOON)
    for signal in signals[:2]:
        close_at(signal, BID, ASK)
    signer.sign(after(2))
    return [entry.payload.encode() for entry in LedgerEntry.objects.order_by("position")]


def test_checkpoints_and_proofs_hold_for_the_entries_of_the_ledger() -> None:
    texts = signed_ledger()
    keys = [VerifierKey.read(line) for line in get("/ledger/key").splitlines()]
    roots = {}
    for size in (3, 5):
        note = Note.read(get(f"/ledger/checkpoints/{size}").encode())
        assert note.signed_by(keys)
        roots[size] = Checkpoint.read(note.text).root
        assert roots[size] == naive.head(texts[:size])
        for position in range(1, size + 1):
            lines = get(f"/ledger/proofs?position={position}&size={size}").splitlines()
            proof = [read_hash(line) for line in lines]
            assert proof == naive.path(position - 1, texts[:size])
    assert get("/ledger/checkpoint") == get("/ledger/checkpoints/5")
    proof = [read_hash(line) for line in get("/ledger/proofs?old=3&size=5").splitlines()]
    assert merkle.proves_consistency(3, roots[3], 5, roots[5], proof)
    assert get("/ledger/proofs?position=1") == get("/ledger/proofs?position=1&size=5")
    assert get("/ledger/proofs?old=0") == get("/ledger/proofs?old=5") == ""


@pytest.mark.parametrize(
    ("query", "status"),
    [
        *((query, 400) for query in ("", "size=5", "position=x", "position=1&old=1", "old=-1")),
        *((query, 400) for query in ("position=1&size=", "position=01", f"position={'9' * 19}")),
        *((query, 404) for query in ("position=0", "position=6", "old=6", "position=4&size=3")),
        *((query, 404) for query in ("position=1&size=6", f"old={'9' * 18}&size={'9' * 18}")),
    ],
)
def test_proof_that_cannot_be_given_is_refused(query: str, status: int) -> None:
    signed_ledger()
    get(f"/ledger/proofs?{query}", status)


def test_what_was_not_signed_is_not_there() -> None:
    assert get("/ledger/key") == ""
    get("/ledger/checkpoint", 404)
    get("/ledger/proofs?old=0")
    get("/ledger/proofs?position=1", 404)
    signed_ledger()
    get("/ledger/checkpoints/4", 404)
    assert Client().post("/ledger/checkpoint").status_code == 405


def test_current_key_is_first_and_the_old_one_stays() -> None:
    signed_ledger()
    keyring.rotate(NOON)
    old, new = LogKey.objects.order_by("pk")
    assert get("/ledger/key") == f"{new.verifier}\n{old.verifier}\n"
