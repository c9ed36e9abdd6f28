"""Dukascopy's hours of ticks: JSON, in which each tick is what changed since the one before, and .bi5 files,
LZMA-packed records whose hour stands in the path."""

import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import accumulate, repeat
from struct import Struct

import msgspec

from core.times import epoch_ms
from market.prices.records import Tick

from .dukascopy_points import POINTS
from .format import NO_TICK, BadFile, FileBatch, FilePosition, Format, Read, Subject


def as_one_hour(parse: Callable[[bytes, Subject], list[Tick]], fault: str) -> Read:
    """How a file is read that makes sense only as a whole; `fault` says what it is where it makes none."""

    def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
        try:
            ticks = parse(b"".join(blocks), subject)
        except (lzma.LZMAError, *NO_TICK) as error:
            raise BadFile(f"{subject.path} is {fault}: {error}. Download it again.") from None
        yield FileBatch(ticks, range(1, len(ticks) + 1))

    return read


JSON_SAMPLE = '{"timestamp":1783944000000,"multiplier":1.0E-5,"ask":1.14277,"bid":1.14273,"times":[93, …], …}'


class Hour(msgspec.Struct):
    timestamp: int
    multiplier: float
    times: list[int]
    asks: list[int]
    bids: list[int]
    # An hour without ticks need not name prices.
    ask: float = 0.0
    bid: float = 0.0


def parse_json(body: bytes, subject: Subject) -> list[Tick]:
    hour = msgspec.json.decode(body, type=Hour)
    if not len(hour.times) == len(hour.asks) == len(hour.bids) or not 0 < hour.multiplier <= 1:
        raise ValueError("columns of different lengths")
    # Divided rather than multiplied: 114277 / 100000 is 1.14277, 114277 * 0.00001 is not.
    units = round(1 / hour.multiplier)
    times = _sums(hour.timestamp, hour.times)
    bids, asks = (
        [price / units for price in _sums(round(first * units), changes)]
        for first, changes in ((hour.bid, hour.bids), (hour.ask, hour.asks))
    )
    return list(map(Tick, repeat(subject.symbol), bids, asks, times))


def _sums(first: int, changes: list[int]) -> list[int]:
    return list(accumulate(changes, initial=first))[1:]


def is_json_hour(head: bytes, path: str) -> bool:
    return head.lstrip().startswith(b"{") and b'"multiplier"' in head and b'"timestamp"' in head


DUKASCOPY = Format(
    "dukascopy", JSON_SAMPLE, is_json_hour, as_one_hour(parse_json, "no whole hour of Dukascopy's")
)

BI5_SAMPLE = "…/EURUSD/2024/00/15/13h_ticks.bi5 (months from 00)"

# Milliseconds within the hour, ask, bid, ask volume, bid volume.
RECORD = Struct(">IIIff")
PATH = re.compile(r"(?:([^/\\]+)[/\\])?(\d{4})[/\\](\d\d)[/\\](\d\d)[/\\](\d\d)h_ticks\.bi5$")


def usual_point(path: str, symbol: str, digits: int) -> float:
    """Dukascopy's, by its own name of the instrument, which is that of the folder, or else by ours."""
    match = PATH.search(path)
    folder = match[1] or "" if match else ""
    named = [POINTS[name] for name in (folder.upper(), symbol) if name in POINTS]
    return named[0] if named else 0.00001 if digits > 3 else 0.001


def hour_ms(path: str) -> int:
    """2024/00/15/13h_ticks.bi5 is 13:00 of 15 January: months are counted from 0."""
    match = PATH.search(path)
    try:
        year, month, day, hour = map(int, match.groups()[1:] if match else ())
        return epoch_ms(datetime(year, month + 1, day, hour, tzinfo=UTC))
    except ValueError:
        raise BadFile(
            f"{path}: the hour of a .bi5 file stands in its path. Keep it as {BI5_SAMPLE}."
        ) from None


def parse_bi5(packed: bytes, subject: Subject) -> list[Tick]:
    hour, units = hour_ms(subject.path), round(1 / subject.point)
    records = lzma.decompress(packed) if packed else b""
    if len(records) % RECORD.size:
        raise ValueError("the last record is cut short")
    return [
        Tick(subject.symbol, bid / units, ask / units, hour + within_ms)
        for within_ms, ask, bid, _, _ in RECORD.iter_unpack(records)
    ]


BI5 = Format("bi5", BI5_SAMPLE, lambda head, path: path.endswith(".bi5"), as_one_hour(parse_bi5, "damaged"))
