"""Signed notes: a text, an empty line, and a line for each signature."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import NamedTuple

from .keys import SigningKey, VerifierKey, is_key_name

DASH = "— "
ID_BYTES = 4
MOST_BYTES, MOST_SIGNATURES = 1_000_000, 100


class NoteRefused(ValueError):
    """It is no signed note, or a known key's signature does not hold."""


class Signature(NamedTuple):
    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        """The whole line."""
        return f"{DASH}{self.name} {base64.b64encode(self.key_id + self.signature).decode()}\n"

    @classmethod
    def read(cls, line: str) -> Signature:
        name, _, encoded = line.removeprefix(DASH).partition(" ")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except ValueError:
            raw = b""
        if not line.startswith(DASH) or not is_key_name(name) or len(raw) <= ID_BYTES:
            raise NoteRefused(f"This is no line of a signature: {line[:100]!r}")
        return cls(name, raw[:ID_BYTES], raw[ID_BYTES:])


class Note(NamedTuple):
    text: str
    """With the newline at its end, as it is signed."""
    signatures: tuple[Signature, ...]

    @classmethod
    def read(cls, raw: bytes) -> Note:
        if len(raw) > MOST_BYTES:
            raise NoteRefused(f"A note has at most {MOST_BYTES:,} bytes.")
        try:
            whole = raw.decode()
        except UnicodeDecodeError:
            raise NoteRefused("A note is UTF-8.") from None
        if any(letter < " " and letter != "\n" for letter in whole):
            raise NoteRefused("A note has no control characters but newlines.")
        text, separator, signed = whole.rpartition("\n\n")
        if not separator or not signed.endswith("\n"):
            raise NoteRefused("A note is a text, an empty line and lines of signatures.")
        lines = signed[:-1].split("\n")
        if len(lines) > MOST_SIGNATURES:
            raise NoteRefused(f"A note has at most {MOST_SIGNATURES} signatures.")
        return cls(f"{text}\n", tuple(map(Signature.read, lines)))

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(map(str, self.signatures))}"

    def signed_by(self, keys: Iterable[VerifierKey]) -> dict[VerifierKey, Signature]:
        """Which of the keys signed it. Signatures of others are ignored; one of these that does not hold
        spoils the note."""
        known = {(key.name, key.id): key for key in keys}
        found: dict[VerifierKey, Signature] = {}
        for each in self.signatures:
            key = known.get((each.name, each.key_id))
            # A second one by the same key adds nothing.
            if key is None or key in found:
                continue
            if not key.verifies(self.text, each.signature):
                raise NoteRefused(f"The signature of {key.name} does not hold.")
            found[key] = each
        return found


def sign(text: str, key: SigningKey, now_s: int = 0) -> Signature:
    return Signature(key.name, key.verifier.id, key.sign(text, now_s))
