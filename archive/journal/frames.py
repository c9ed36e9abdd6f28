"""What a segment of the journal holds. Each frame has its length and its checksum before it, so that one that
a kill or a power cut tore is told from a whole one."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import msgspec

from market.prices import EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

VERSION = 1
SIZES = 8
# No frame is longer: a length beyond it is damage, and nobody makes room for it.
MOST_BYTES = 1 << 26

KeptRecord = TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan


class Opened(msgspec.Struct, array_like=True, tag=0):
    """The first frame of a segment."""

    version: int
    at_ms: int
    candle_price: str
    standings: dict[str, tuple[int, int]] | None = None
    """What the database knew when an engine began, by symbol: the last number and the end of the last closed
    minute. What segments before this one have beyond that comes again in this one, or counts for nothing.
    None where the same engine goes on."""


class HeardRecords(msgspec.Struct, array_like=True, tag=1):
    """Records in the order in which the engine decided them."""

    epoch: str
    records: list[KeptRecord]


Frame = Opened | HeardRecords
OnDamage = Callable[[int, int], None]
"""Is told at which byte of the segment the damage begins, and how many there are."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


def framed(frame: Frame) -> bytes:
    body = _encode(frame)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


# How the body of an `Opened` and of a `HeardRecords` begins.
BODY = re.compile(rb"\x95\x00|\x93\x01")


def whole_frames(blocks: Iterable[bytes], on_damage: OnDamage = lambda offset, size: None) -> Iterator[Frame]:
    """Each that is whole. `on_damage` hears what lies between two of them and is none; what comes after the
    last was torn by a kill or a power cut, and is the ordinary end."""
    rest, offset = b"", 0
    damaged: int | None = None
    for block in chain(blocks, (b"",)):
        rest += block
        start = 0
        while start < len(rest):
            end = _end(rest, start)
            if end is None and block:
                break
            if end is not None and _is_whole(rest, start, end):
                if damaged is not None:
                    on_damage(damaged, offset + start - damaged)
                    damaged = None
                yield _decode(rest[start + SIZES : end])
                start = end
            else:
                damaged = offset + start if damaged is None else damaged
                start = _next_body(rest, start + SIZES + 1) - SIZES
        rest, offset = rest[start:], offset + start


def _is_whole(data: bytes, start: int, end: int) -> bool:
    return end > start and zlib.crc32(data[start + SIZES : end]) == _number(data, start + 4)


def _next_body(data: bytes, start: int) -> int:
    """Where the body of a frame may begin; in what comes after `data`, if nowhere in it."""
    found = BODY.search(data, start)
    return found.start() if found else max(start, len(data) - 1)


def _end(data: bytes, start: int) -> int | None:
    """Where the frame ends that begins here; None if it is not all there, and `start` if it cannot be one."""
    if len(data) < start + SIZES:
        return None
    size = _number(data, start)
    if not 0 < size <= MOST_BYTES:
        return start
    end = start + SIZES + size
    return end if len(data) >= end else None


def _number(data: bytes, start: int) -> int:
    return int.from_bytes(data[start : start + 4], "big")
