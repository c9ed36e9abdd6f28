"""What a log offers a witness, and how a witness judges it: the bodies of `add-checkpoint`."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from .checkpoints import SIZE, Checkpoint, CheckpointRefused, read_hash, write_hash
from .keys import VerifierKey
from .merkle import EMPTY_ROOT, proves_consistency
from .notes import Note, NoteRefused

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
