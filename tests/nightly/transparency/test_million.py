"""What a checkpoint and its proofs cost over a ledger of a million entries, in processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from django.test import RequestFactory

from tests.nightly.figures import note
from tests.transparency.ledgers import NOON, after
from transparency import merkle, views
from transparency.checkpoints import Checkpoint, Note, sign
from transparency.keyring import keyring
from transparency.merkle import Place, leaf_hash
from transparency.models import SignedCheckpoint, Tile
from transparency.remembered import Remembered
from transparency.signing import Signer

ENTRIES, ROUNDS, MOST_CHECKPOINT_MS, MOST_PROOF_MS = 1_000_000, 50, 50, 5


class LongLedger:
    def __init__(self) -> None:
        self.size = ENTRIES

    def count(self) -> int:
        return self.size

    def texts(self, after: int, upto: int) -> Iterable[str]:
        return map(str, range(after, upto))


@pytest.fixture
def ledger(db: None, tmp_path: Path, settings: Any) -> LongLedger:
    """All of it is signed."""
    settings.VAR_DIR = tmp_path
    tiles: dict[Place, bytes] = {}
    merkle.append(tiles, 0, (leaf_hash(b"%d" % number) for number in range(ENTRIES)))
    Tile.objects.write(tiles)
    (key,) = keyring.signing_keys(NOON)
    text = str(Checkpoint(key.name, ENTRIES, merkle.root(tiles, ENTRIES)))
    signed = str(Note(text, (sign(text, key),)))
    SignedCheckpoint.objects.create(origin=key.name, size=ENTRIES, note=signed, made_at=NOON, signed_at=NOON)
    return LongLedger()


def median_ms(act: Callable[[int], object]) -> float:
    took = []
    for number in range(ROUNDS):
        began_s = time.process_time()
        act(number)
        took.append(1_000 * (time.process_time() - began_s))
    return statistics.median(took)


def test_checkpoint_and_proofs_over_a_million_entries(ledger: LongLedger) -> None:
    signer = Signer(ledger, Remembered())

    def make_checkpoint(number: int) -> None:
        ledger.size += 10
        assert signer.sign(after(2 * number)) is not None

    def prove(query: str) -> None:
        assert views.proofs(RequestFactory().get(f"/ledger/proofs?{query}")).status_code == 200

    figures = {
        "A checkpoint": (median_ms(make_checkpoint), MOST_CHECKPOINT_MS),
        "A proof of inclusion": (median_ms(lambda at: prove(f"position={1 + 19_999 * at}")), MOST_PROOF_MS),
        "A proof of consistency": (median_ms(lambda at: prove(f"old={1 + 19_999 * at}")), MOST_PROOF_MS),
    }
    for what, (took_ms, most_ms) in figures.items():
        figure = f"{what} over {ENTRIES:,} entries, processor time"
        note(figure, f"at most {most_ms} ms", f"{took_ms:.2f} ms", held=took_ms <= most_ms)
    assert all(took_ms <= most_ms for took_ms, most_ms in figures.values()), figures
