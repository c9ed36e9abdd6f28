"""Ticks of a test in the files that REST reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from market.engine.recent_ticks import Batch, RecentTicks, TickWriter, recent_ticks_folder
from market.engine.tick_pages import FoundTicks, TickPlace, WantedTicks, unpack_ticks
from market.prices.records import TickAccepted

NOON_MS = 1_763_467_200_000
MANY_BYTES = 1_000_000_000


def tick(symbol: str, seq: int, time_ms: int = NOON_MS, source: str = "push") -> TickAccepted:
    bid = round(1.08 + seq % 97 / 10_000, 5)
    return TickAccepted(symbol, bid, round(bid + 0.0001, 5), time_ms, seq % 53 / 4, seq, source=source)


def batch(epoch: str, symbol: str, seqs: Iterable[int], source: str = "push") -> Batch:
    """A tick each millisecond."""
    return epoch, [tick(symbol, seq, NOON_MS + seq, source) for seq in seqs]


def keep(epoch: str, *batches: Batch, root: Path | None = None, hours: int = 24) -> TickWriter:
    """As one engine does from its start to its end."""
    writer = TickWriter(root or recent_ticks_folder(), hours, MANY_BYTES)
    for each in batches:
        writer.write(epoch, [each])
    assert (writer.fault, writer.lost) == ("", 0)
    return writer


def page(
    root: Path,
    epoch: str,
    symbol: str = "EURUSD",
    start_ms: int = 0,
    limit: int = 1_000,
    after: TickPlace | None = None,
) -> FoundTicks:
    wanted = WantedTicks(symbol, start_ms, NOON_MS * 2, limit, after, lambda source: source != "hidden")
    return RecentTicks(root).find(wanted, epoch)


def walk(root: Path, epoch: str, limit: int = 1_000) -> Iterator[tuple[str, list[int]]]:
    """The epoch and the numbers of each page."""
    after: TickPlace | None = None
    while True:
        found = page(root, epoch, limit=limit, after=after)
        ticks = [*unpack_ticks(found.bodies)]
        yield found.epoch, [each.seq for each in ticks]
        if not found.has_more:
            return
        after = TickPlace(found.epoch, ticks[-1].seq, ticks[-1].time_ms)
