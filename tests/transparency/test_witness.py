"""The witness: every answer to an offered checkpoint, and what it remembers."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from transparency import merkle
from transparency.checkpoints import Checkpoint, Note, Offer, OfferRefused, Signature, sign, write_hash
from transparency.keys import KeyType, SigningKey, cosigned_at_s
from transparency.witness import STATE, Witness

from . import naive

ORIGIN, NOW_S = "log.example/ledger", 1_790_000_000
LOG = SigningKey.make(ORIGIN, KeyType.ED25519)
OTHER = SigningKey.make("other.example/ledger", KeyType.ED25519)
KEY = SigningKey.make("witness.example", KeyType.COSIGNATURE)
TREE = naive.tree_of(20)


def note(size: int, root: bytes | None = None, key: SigningKey = LOG, origin: str = ORIGIN) -> Note:
    text = str(Checkpoint(origin, size, merkle.root(TREE, size) if root is None else root))
    return Note(text, (sign(text, key),))


def offer(old: int, size: int, proof: list[bytes] | None = None, of: Note | None = None) -> bytes:
    hashes = merkle.consistency_proof(TREE, old, size) if proof is None else proof
    return bytes(Offer(old, tuple(hashes), of or note(size)))


def make_witness(folder: Path) -> Witness:
    return Witness(folder, KEY, (LOG.verifier, OTHER.verifier))


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    """It has cosigned five entries."""
    found = make_witness(tmp_path)
    found.accept(ORIGIN, note(5))
    return found


def status_of(witness: Witness, raw: bytes) -> int:
    try:
        witness.add_checkpoint(raw, NOW_S)
    except OfferRefused as refused:
        return refused.status
    return 200


def test_extension_is_cosigned_and_remembered_over_a_restart(witness: Witness, tmp_path: Path) -> None:
    line = witness.add_checkpoint(offer(5, 9), NOW_S)
    cosigned = Note(note(9).text, (Signature.read(line.removesuffix("\n")),)).signed_by([KEY.verifier])
    assert cosigned_at_s(cosigned[KEY.verifier].signature) == NOW_S
    assert status_of(make_witness(tmp_path), offer(5, 12)) == 409
    assert status_of(make_witness(tmp_path), offer(9, 12)) == 200


def test_same_checkpoint_is_cosigned_again(witness: Witness) -> None:
    assert witness.add_checkpoint(offer(5, 5), NOW_S) != witness.add_checkpoint(offer(5, 5), NOW_S + 1)


def altered(raw: bytes) -> bytes:
    return raw.replace(b"\n9\n", b"\n8\n")


NOT_READ = {
    "nothing": b"",
    "no old size": offer(5, 9).replace(b"old 5", b"old "),
    "no first word": offer(5, 9).replace(b"old ", b""),
    "signed old size": offer(5, 9).replace(b"old 5", b"old -5"),
    "another first word": offer(5, 9).replace(b"old 5", b"new 5"),
    "no hash": offer(5, 9, [b"short"]),
    "too many hashes": offer(5, 9, [bytes(32)] * 64),
    "no note": offer(5, 9).partition(b"\n\n")[0] + b"\n\nnothing",
    "no checkpoint": offer(5, 9, of=Note("text\n", (sign("text\n", LOG),))),
    "old beyond the size": offer(9, 5, []),
}
UNPROVED = {
    "no proof": offer(5, 9, []),
    "another proof": offer(5, 9, merkle.consistency_proof(TREE, 4, 9)),
    "another root": offer(5, 9, of=note(9, bytes(32))),
    "same size, another root": offer(5, 5, of=note(5, bytes(32))),
    "same size, with a proof": offer(5, 5, [bytes(32)]),
}


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        *((400, raw) for raw in NOT_READ.values()),
        (404, offer(5, 9, of=note(9, origin="unknown.example"))),
        (403, offer(5, 9, of=note(9, key=OTHER))),
        (403, altered(offer(5, 9))),
        (409, offer(0, 9)),
        (409, offer(4, 9)),
        (409, offer(6, 9)),
        *((422, raw) for raw in UNPROVED.values()),
    ],
    ids=[
        *NOT_READ,
        "unknown log",
        "key of another log",
        "altered",
        "no memory",
        "too low",
        "too high",
        *UNPROVED,
    ],
)
def test_what_is_not_cosigned_changes_nothing(witness: Witness, status: int, raw: bytes) -> None:
    assert status_of(witness, raw) == status
    assert status_of(witness, offer(5, 9)) == 200


def test_client_without_memory_learns_the_size(witness: Witness) -> None:
    with pytest.raises(OfferRefused, match=r"\A5\n\Z"):
        witness.add_checkpoint(offer(0, 9), NOW_S)


def test_empty_log_is_followed_from_its_first_checkpoint(tmp_path: Path) -> None:
    witness = make_witness(tmp_path)
    witness.accept(ORIGIN, note(0))
    assert status_of(witness, offer(0, 0, of=note(0, bytes(32)))) == 422
    assert status_of(witness, offer(0, 0)) == 200
    assert status_of(witness, offer(0, 9, [bytes(32)])) == 422
    assert status_of(witness, offer(0, 9)) == 200


def test_decision_waits_for_the_one_before(
    witness: Witness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transparency.witness.BUSY_S", PATIENCE_S)
    root = write_hash(merkle.root(TREE, 4))
    with (
        ThreadPoolExecutor(1) as pool,
        closing(sqlite3.connect(tmp_path / STATE, isolation_level=None)) as another,
    ):
        for _ in range(30):
            another.execute("BEGIN IMMEDIATE")
            another.execute("UPDATE log SET size = 4, root = ?", (root,))
            found = pool.submit(status_of, witness, offer(4, 5))
            # Meanwhile it could decide by what was there before.
            for _ in range(20):
                another.execute("SELECT size FROM log").fetchall()
            another.execute("COMMIT")
            assert found.result(PATIENCE_S) == 200


def test_witness_that_lost_its_state_refuses_until_the_log_is_accepted(
    witness: Witness, tmp_path: Path
) -> None:
    (tmp_path / STATE).unlink()
    assert status_of(witness, offer(5, 9)) == 403
    assert status_of(witness, offer(0, 9)) == 403
    witness.accept(ORIGIN, note(9))
    assert status_of(witness, offer(9, 12)) == 200


@pytest.mark.parametrize(
    ("origin", "accepted"),
    [
        (ORIGIN, note(3)),
        (ORIGIN, note(9)),
        (OTHER.name, note(9)),
        (OTHER.name, note(9, origin=OTHER.name)),
        ("unknown.example", note(9, origin="unknown.example")),
    ],
    ids=["earlier", "later", "of another log", "with the key of another log", "unknown"],
)
def test_log_that_is_followed_or_not_signed_by_its_key_is_not_accepted(
    witness: Witness, origin: str, accepted: Note
) -> None:
    with pytest.raises(OfferRefused):
        witness.accept(origin, accepted)
    assert status_of(witness, offer(5, 9)) == 200
