"""Signed notes, checkpoints and their keys."""

from __future__ import annotations

import base64
import json

import pytest

from transparency.checkpoints import Checkpoint, CheckpointRefused, Note, NoteRefused, Signature, sign
from transparency.keys import KeyRefused, KeyType, SigningKey, VerifierKey, cosigned_at_s
from transparency.merkle import EMPTY_ROOT

# The test vector of the specification of signed notes.
FOO = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
TEXT = "This is an example message.\n"
SIGNED = (
    f"{TEXT}\n— example.com/foo"
    " Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
LOG = SigningKey("log.example/ledger", KeyType.ED25519, bytes(32))
WITNESS = SigningKey("witness.example", KeyType.COSIGNATURE, bytes(range(32)))
NOW_S = 1_790_000_000


def cosigned(text: str = TEXT) -> Note:
    return Note(text, (sign(text, LOG, NOW_S), sign(text, WITNESS, NOW_S)))


def test_published_vector_verifies_and_is_written_as_it_was_read() -> None:
    key, note = VerifierKey.read(FOO), Note.read(SIGNED.encode())
    assert str(key) == FOO
    assert note.text == TEXT
    assert set(note.signed_by([key])) == {key}
    assert str(note) == SIGNED


def test_unknown_signatures_are_kept_and_ignored() -> None:
    of_unknown_type = Signature(WITNESS.name, b"\x06abc", b"ML-DSA-44" * 300)
    note = Note.read(str(Note(TEXT, (of_unknown_type, *cosigned().signatures))).encode())
    assert set(note.signed_by([WITNESS.verifier])) == {WITNESS.verifier}
    assert note.signed_by([VerifierKey.read(FOO)]) == {}
    assert str(of_unknown_type) in str(note)


@pytest.mark.parametrize("key", [LOG, WITNESS])
@pytest.mark.parametrize("at", [0, 20, -1])
def test_altered_signature_of_a_known_key_spoils_the_note(key: SigningKey, at: int) -> None:
    raw = bytearray(key.sign(TEXT, NOW_S))
    raw[at] ^= 1
    note = Note(TEXT, (Signature(key.name, key.verifier.id, bytes(raw)), *cosigned().signatures))
    with pytest.raises(NoteRefused):
        note.signed_by([LOG.verifier, WITNESS.verifier])


def test_second_signature_by_the_same_key_adds_nothing() -> None:
    note = Note(TEXT, (*cosigned().signatures, Signature(LOG.name, LOG.verifier.id, bytes(64))))
    assert set(note.signed_by([LOG.verifier])) == {LOG.verifier}


def test_signature_of_another_text_does_not_hold() -> None:
    note = Note("Another text.\n", cosigned().signatures)
    for key in (LOG, WITNESS):
        with pytest.raises(NoteRefused):
            note.signed_by([key.verifier])


def test_cosignature_says_when() -> None:
    found = cosigned().signed_by([WITNESS.verifier])[WITNESS.verifier]
    assert cosigned_at_s(found.signature) == NOW_S


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        TEXT.encode(),
        f"{TEXT}\n".encode(),
        f"{SIGNED[:-1]}=".encode(),
        SIGNED.replace("—", "-").encode(),
        SIGNED.replace("example.com/foo ", "example.com+foo ").encode(),
        SIGNED.replace("example.com/foo ", "example.com/foo  ").encode(),
        SIGNED.replace("Uw2QOkn8", "Uw2Q?kn8").encode(),
        f"{TEXT}\n— example.com/foo Uw2QOg==\n".encode(),
        SIGNED.replace("example ", "example\t").encode(),
        SIGNED.encode("latin-1", "replace") + b"\xff\n",
        (SIGNED + "— example.com/foo Uw2QOkn8\n" * 100).encode(),
        SIGNED.replace("This", "This" * 300_000).encode(),
    ],
)
def test_what_is_no_note_is_refused(raw: bytes) -> None:
    with pytest.raises(NoteRefused):
        Note.read(raw)


def test_text_of_a_note_may_have_empty_lines() -> None:
    note = Note("one\n\ntwo\n", (sign("one\n\ntwo\n", LOG, NOW_S),))
    assert Note.read(str(note).encode()) == note


@pytest.mark.parametrize("key", [LOG, WITNESS])
def test_keys_are_read_as_they_are_written(key: SigningKey) -> None:
    assert SigningKey.read(f"{key.secret_text()}\n") == key
    assert VerifierKey.read(str(key.verifier)) == key.verifier


def test_new_keys_differ_and_show_no_secret() -> None:
    first, second = (SigningKey.make("log.example", KeyType.ED25519) for _ in range(2))
    assert first.seed != second.seed
    assert str(first.seed) not in f"{first} {first!r}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com/foo",
        FOO.replace("530d903a", "530d903b"),
        FOO.replace("example.com/foo", "example.com/bar"),
        FOO.replace("example.com", "example com"),
        FOO.replace("+Ae", "+Be"),
        FOO.replace("AekyeRrm56hA", ""),
        FOO + "?",
        str(VerifierKey("short", KeyType.ED25519, bytes(31))),
    ],
)
def test_what_is_no_verifier_key_is_refused(text: str) -> None:
    with pytest.raises(KeyRefused):
        VerifierKey.read(text)


@pytest.mark.parametrize("text", ["", FOO, LOG.secret_text().replace("log.", "gol."), LOG.secret_text()[12:]])
def test_what_is_no_private_key_is_refused(text: str) -> None:
    with pytest.raises(KeyRefused):
        SigningKey.read(text)


def test_key_without_a_proper_name_is_not_made() -> None:
    for name in ("", "two words", "a+b", "line\nbreak", "bell\a"):
        with pytest.raises(KeyRefused):
            SigningKey.make(name, KeyType.ED25519)


def test_checkpoint_is_read_as_it_is_written_with_lines_of_other_logs_besides() -> None:
    checkpoint = Checkpoint("log.example/ledger", 1_000_000, EMPTY_ROOT)
    root = base64.b64encode(EMPTY_ROOT).decode()
    assert str(checkpoint) == f"log.example/ledger\n1000000\n{root}\n"
    assert Checkpoint.read(f"{checkpoint}more\n") == checkpoint


@pytest.mark.parametrize(
    ("wrong", "lines"),
    [
        *((wrong, (wrong, "5", "ROOT")) for wrong in ("", "two words", "a+b")),
        *((wrong, ("log", wrong, "ROOT")) for wrong in ("", "-1", "05", "+5", "5.0", "1_0", "٣", "9" * 19)),
        *((wrong, ("log", "5", wrong)) for wrong in ("", "ROOT?", "AAAA", "ROOT\r")),
    ],
    ids=json.dumps,
)
def test_what_is_no_checkpoint_is_refused(wrong: str, lines: tuple[str, ...]) -> None:
    root = base64.b64encode(EMPTY_ROOT).decode()
    with pytest.raises(CheckpointRefused):
        Checkpoint.read("\n".join(lines).replace("ROOT", root) + "\n")
