"""Notes, proofs and cosignatures, as Go's packages read and make them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from transparency import merkle
from transparency.checkpoints import Checkpoint, Note, NoteRefused, read_hash, sign, write_hash
from transparency.keys import KeyType, SigningKey, VerifierKey, cosigned_at_s

from . import naive
from .foreign_log import ForeignLog, foreign_log

pytestmark = pytest.mark.served

ORIGIN, NOW_S = "log.example/ledger", 1_790_000_000
SIZE = 300
LOG = SigningKey.make(ORIGIN, KeyType.ED25519)
WITNESS = SigningKey.make("witness.example", KeyType.COSIGNATURE)


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignLog]:
    with foreign_log(tmp_path_factory.mktemp("foreign")) as log:
        yield log


def hashes(proof: list[bytes]) -> list[str]:
    return [write_hash(each) for each in proof]


def test_go_reads_our_checkpoint_and_its_cosignature(go: ForeignLog) -> None:
    text = str(Checkpoint(ORIGIN, 3, merkle.root(naive.tree_of(3), 3)))
    note = str(Note(text, (sign(text, LOG, NOW_S), sign(text, WITNESS, NOW_S))))
    keys = [str(LOG.verifier), str(WITNESS.verifier)]
    opened = go.get("open", Note=note, Keys=keys)
    assert (opened["Text"], opened["Signers"]) == (text, [LOG.name, WITNESS.name])
    assert go.get("open", Note=note, Keys=keys[:1])["Unknown"] == [WITNESS.name]
    for wrong in (note.replace("\n3\n", "\n4\n"), note[:-9] + note[-1]):
        assert go.ask("open", Note=wrong, Keys=keys)["Error"]


def test_we_read_the_notes_of_go(go: ForeignLog) -> None:
    made = go.get("make key", Name=ORIGIN)
    key = VerifierKey.read(made["Key"])
    assert SigningKey.read(made["Secret"]).verifier == key
    text = str(Checkpoint(ORIGIN, 3, merkle.EMPTY_ROOT))
    secrets = [made["Secret"], WITNESS.secret_text(), LOG.secret_text()]
    note = Note.read(go.get("sign", Text=text, Secrets=secrets, TimeS=NOW_S)["Text"].encode())
    found = note.signed_by([key, WITNESS.verifier, LOG.verifier])
    assert set(found) == {key, WITNESS.verifier, LOG.verifier}
    assert cosigned_at_s(found[WITNESS.verifier].signature) == NOW_S
    with pytest.raises(NoteRefused):
        Note(text.replace("3", "4"), note.signatures).signed_by([WITNESS.verifier])


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, SIZE])
def test_go_accepts_our_proofs_and_no_other(go: ForeignLog, size: int) -> None:
    entries, tiles = naive.entries_of(size), naive.tree_of(size)
    tree = {"Size": size, "Root": write_hash(merkle.root(tiles, size))}
    for index in {0, size // 3, size - 1}:
        proof = hashes(merkle.inclusion_proof(tiles, index, size))
        about = tree | {"Index": index, "Entries": [entries[index].decode()]}
        go.get("check inclusion", **about, Proof=proof)
        assert go.ask("check inclusion", **about, Proof=[*proof, tree["Root"]])["Error"]
        old = index + 1
        about = tree | {"Old": old, "OldRoot": write_hash(merkle.root(tiles, old))}
        proof = hashes(merkle.consistency_proof(tiles, old, size))
        go.get("check consistency", **about, Proof=proof)
        assert go.ask("check consistency", **about, Proof=[*proof, tree["Root"]])["Error"]


def test_we_accept_the_roots_and_proofs_of_go(go: ForeignLog) -> None:
    entries, tiles = naive.entries_of(SIZE), naive.tree_of(SIZE)
    texts = [each.decode() for each in entries]
    for place in (1, 100, 256, SIZE - 1):
        grown = go.get("grow", Entries=texts, Index=place)
        roots = [read_hash(each) for each in grown["Roots"]]
        assert roots == [merkle.root(tiles, size) for size in range(1, SIZE + 1)]
        proof = [read_hash(each) for each in grown["Proof"]]
        assert proof == merkle.inclusion_proof(tiles, place, SIZE)
        proof = [read_hash(each) for each in go.get("grow", Entries=texts, Old=place)["Proof"]]
        assert merkle.proves_consistency(place, roots[place - 1], SIZE, roots[-1], proof)
