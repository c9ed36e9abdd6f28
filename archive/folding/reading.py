"""Reads the journal for one day: what was given again in a later numbering, or written twice, counts once."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime

from archive.journal import HeardRecords, Opened, TickSegment
from core.times import epoch_ms
from market.prices import TIMEFRAMES, EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

from .rows import Carried, SymbolDay

Bounds = dict[str, tuple[int, int]] | None
"""By symbol the last number and the end of the last minute that count; None: all do."""


def day_start_ms(day: date) -> int:
    return epoch_ms(datetime(day.year, day.month, day.day, tzinfo=UTC))


def bounds_of(heads: list[Opened | None]) -> list[Bounds]:
    """For each segment what of it still counts, by where the engines after it began."""
    bounds: list[Bounds] = []
    known: Bounds = None
    for head in reversed(heads):
        bounds.append(known)
        if head is not None and head.standings is not None:
            known = {
                symbol: standing if known is None else _least(standing, known[symbol])
                for symbol, standing in head.standings.items()
                if known is None or symbol in known
            }
    return bounds[::-1]


def _least(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), min(one[1], other[1])


class DayReader:
    def __init__(self, day: date, known: dict[str, Carried], on_rows: Callable[[SymbolDay], None]) -> None:
        """`on_rows` is called with a symbol that has rows to write."""
        self.start_ms = day_start_ms(day)
        self.end_ms = self.start_ms + TIMEFRAMES["1d"]
        self.symbols: dict[str, SymbolDay] = {}
        self.candle_prices: list[str] = []
        self.damages: defaultdict[TickSegment, list[tuple[int, int]]] = defaultdict(list)
        """At which byte of a segment, and how many bytes cannot be read."""
        self._known, self._on_rows = known, on_rows
        for symbol in known:
            self._symbol(symbol)

    def read(self, segments: list[TickSegment]) -> None:
        heads = [segment.head() for segment in segments]
        for segment, head, bounds in zip(segments, heads, bounds_of(heads), strict=True):
            if head is not None:
                self._begin(head)
                for epoch, record in _records(segment, bounds, self.damages):
                    self._take(epoch, record)
            elif next(segment.frames(), None) is not None:
                # Without its head nobody knows which of it counts.
                self.damages[segment].append((0, segment.path.stat().st_size))

    def _begin(self, head: Opened) -> None:
        if head.candle_price not in self.candle_prices and head.at_ms < self.end_ms:
            self.candle_prices.append(head.candle_price)
        for symbol, (seq, _) in (head.standings or {}).items():
            if head.at_ms < self.end_ms or symbol in self.symbols:
                self._symbol(symbol).begins(seq, head.at_ms)

    def _take(self, epoch: str, record: TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan) -> None:
        own = self._symbol(record.symbol)
        if isinstance(record, TickAccepted):
            own.take(epoch, record)
            self._on_rows(own)
        elif isinstance(record, SeriesBegan):
            own.begins_series(record.seq, record.at_ms, simulated=record.simulated)
        else:
            own.make_minute(record)

    def earlier_days(self) -> list[date]:
        """Those before it of which something came after their files were made."""
        began = {start_ms for own in self.symbols.values() for start_ms in own.earlier_ms}
        return sorted(datetime.fromtimestamp(start_ms // 1000, UTC).date() for start_ms in began)

    def _symbol(self, symbol: str) -> SymbolDay:
        own = self.symbols.get(symbol)
        if own is None:
            known = self._known.get(symbol)
            own = SymbolDay(symbol, self.start_ms, self.end_ms, known)
            self.symbols[symbol] = own
        return own


def _records(
    segment: TickSegment, bounds: Bounds, damages: defaultdict[TickSegment, list[tuple[int, int]]]
) -> Iterator[tuple[str, TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan]]:
    for frame in segment.frames(lambda offset, size: damages[segment].append((offset, size))):
        if isinstance(frame, HeardRecords):
            for record in frame.records:
                if bounds is None or _counts(record, bounds.get(record.symbol, (0, 0))):
                    yield frame.epoch, record


def _counts(record: TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan, bound: tuple[int, int]) -> bool:
    seq, closed_until_ms = bound
    if isinstance(record, TickAccepted | SeriesBegan):
        return record.seq <= seq
    opened_ms = record.minute_ms if isinstance(record, EmptyMinute) else record.minute.opened_ms
    return opened_ms < closed_until_ms
