"""What a segment of the journal holds. Each frame has its length and its checksum before it, so that one that
a kill or a power cut tore is told from a whole one."""

import zlib
from collections.abc import Iterable, Iterator

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
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


def framed(frame: Frame) -> bytes:
    body = _encode(frame)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def whole_frames(blocks: Iterable[bytes]) -> Iterator[Frame]:
    """Up to the first that is torn or damaged."""
    rest = b""
    for block in blocks:
        rest += block
        start = 0
        while (end := _end(rest, start)) is not None:
            if end <= start or zlib.crc32(rest[start + SIZES : end]) != _number(rest, start + 4):
                return
            yield _decode(rest[start + SIZES : end])
            start = end
        rest = rest[start:]


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
