"""Checkpoints: the size and root of a log's tree as a signed note, which is a text, an empty line and a line
for each signature; and the bodies of `add-checkpoint`, in which a log offers them to a witness."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

from transparency.keys import SigningKey, VerifierKey, is_key_name
from transparency.merkle import EMPTY_ROOT, HASH_BYTES, proves_consistency

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


SIZE = re.compile(r"0|[1-9][0-9]{0,17}")
"""What a column of 64 bits holds, and no log ever reaches."""


class CheckpointRefused(ValueError):
    """The text is no checkpoint; the sentence says why."""


class Checkpoint(NamedTuple):
    origin: str
    size: int
    root: bytes

    @classmethod
    def read(cls, text: str) -> Checkpoint:
        """Other logs may add lines, which are signed too and mean nothing here."""
        origin, size, root, *_ = *text.split("\n"), "", ""
        if not is_key_name(origin):
            raise CheckpointRefused("The first line of a checkpoint is the origin of its log.")
        if not SIZE.fullmatch(size):
            raise CheckpointRefused("The second line of a checkpoint is the size of its tree.")
        return cls(origin, int(size), read_hash(root))

    def __str__(self) -> str:
        return f"{self.origin}\n{self.size}\n{write_hash(self.root)}\n"


def read_hash(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raw = b""
    if len(raw) != HASH_BYTES:
        raise CheckpointRefused(f"This is no hash of {HASH_BYTES} bytes in Base64: {text[:100]!r}")
    return raw


def write_hash(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


ADD = "/add-checkpoint"
SIZE_TYPE = "text/x.tlog.size"
"""Of an answer that says which size was cosigned last."""
MOST_HASHES = 63


class WitnessAddress(NamedTuple):
    key: VerifierKey
    url: str
    """Without a slash at its end."""


class OfferRefused(ValueError):
    """It is not cosigned; the text is for the log that offers it."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Offer(NamedTuple):
    old: int
    """The size that the witness is thought to have cosigned last."""
    proof: tuple[bytes, ...]
    note: Note

    @classmethod
    def read(cls, raw: bytes) -> Offer:
        head, _, note = raw.partition(b"\n\n")
        first, *hashes = head.decode("ascii", "replace").split("\n")
        old = first.removeprefix("old ")
        if old == first or not SIZE.fullmatch(old) or len(hashes) > MOST_HASHES:
            text = f"First comes `old` and a size, then at most {MOST_HASHES} hashes, then an empty line.\n"
            raise OfferRefused(HTTPStatus.BAD_REQUEST, text)
        try:
            return cls(int(old), tuple(map(read_hash, hashes)), Note.read(note))
        except (CheckpointRefused, NoteRefused) as refused:
            raise OfferRefused(HTTPStatus.BAD_REQUEST, f"{refused}\n") from None

    def __bytes__(self) -> bytes:
        hashes = "".join(f"{write_hash(each)}\n" for each in self.proof)
        return f"old {self.old}\n{hashes}\n{self.note}".encode()


def judge(offer: Offer, offered: Checkpoint, last: Checkpoint) -> None:
    """Raises OfferRefused unless the offered checkpoint extends the last one."""
    if offer.old > offered.size:
        text = f"The old size {offer.old} is beyond {offered.size}.\n"
        raise OfferRefused(HTTPStatus.BAD_REQUEST, text)
    if offer.old != last.size:
        raise OfferRefused(HTTPStatus.CONFLICT, f"{last.size}\n")
    is_proved = proves_consistency(last.size, last.root, offered.size, offered.root, offer.proof)
    if not is_proved or (not offered.size and offered.root != EMPTY_ROOT):
        text = f"It is not proved that this checkpoint extends that of {last.size} entries.\n"
        raise OfferRefused(HTTPStatus.UNPROCESSABLE_ENTITY, text)
