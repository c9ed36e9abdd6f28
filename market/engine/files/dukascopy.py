"""Dukascopy's JSON: an hour of ticks, each as what changed since the one before."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, repeat

import msgspec

from market.prices.records import Tick

from .format import BadFile, FileBatch, FilePosition, Format, Subject

SAMPLE = '{"timestamp":1783944000000,"multiplier":1.0E-5,"ask":1.14277,"bid":1.14273,"times":[93, …], …}'


class Hour(msgspec.Struct):
    timestamp: int
    multiplier: float
    times: list[int]
    asks: list[int]
    bids: list[int]
    # An hour without ticks need not name prices.
    ask: float = 0.0
    bid: float = 0.0


def parse(body: bytes, symbol: str) -> list[Tick]:
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
    return list(map(Tick, repeat(symbol), bids, asks, times))


def _sums(first: int, changes: list[int]) -> list[int]:
    return list(accumulate(changes, initial=first))[1:]


def read(blocks: Iterable[bytes], subject: Subject, start: FilePosition) -> Iterator[FileBatch]:
    try:
        ticks = parse(b"".join(blocks), subject.symbol)
    except (ValueError, OverflowError, RecursionError) as error:
        raise BadFile(
            f"{subject.path} is no whole hour of Dukascopy's: {error}. Download it again."
        ) from None
    yield FileBatch(ticks, range(1, len(ticks) + 1))


def matches(head: bytes, path: str) -> bool:
    return head.lstrip().startswith(b"{") and b'"multiplier"' in head and b'"timestamp"' in head


FORMAT = Format("dukascopy", SAMPLE, matches, read)
