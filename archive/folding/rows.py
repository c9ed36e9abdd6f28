"""The ticks of one symbol and day on their way out of the journal, in columns."""

from array import array
from typing import Any, NamedTuple

from archive.manifests import NumberGap
from market.prices import TIMEFRAMES, EmptyMinute, HistoryMinute, TickAccepted

DAY_MS = TIMEFRAMES["1d"]


class Names:
    """Texts that come again and again, by a small number."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known))


class TickRows:
    """Rows that are waiting to be written."""

    def __init__(self, epochs: Names, sources: Names, feeds: Names) -> None:
        self._epochs, self._sources, self._feeds = epochs, sources, feeds
        self.clear()

    def clear(self) -> None:
        self.seq, self.time_ms = array("q"), array("q")
        self.bid, self.ask, self.volume = array("d"), array("d"), array("d")
        self.epoch, self.source, self.side = array("i"), array("i"), array("b")
        self.accepted_ms, self.unsettled_ms = array("q"), array("q")
        self.feed, self.settled = array("i"), array("b")

    def __len__(self) -> int:
        return len(self.seq)

    def add(self, epoch: str, tick: TickAccepted) -> None:
        self.seq.append(tick.seq)
        self.time_ms.append(tick.time_ms)
        self.bid.append(tick.bid)
        self.ask.append(tick.ask)
        self.volume.append(tick.volume)
        self.side.append(tick.side)
        self.epoch.append(self._epochs.number(epoch))
        self.source.append(self._sources.number(tick.source))
        self.accepted_ms.append(tick.accepted_ms)
        self.unsettled_ms.append(tick.unsettled_ms)
        self.feed.append(self._feeds.number(tick.feed))
        self.settled.append(tick.settled)


class Carried(NamedTuple):
    """The last tick of a symbol before the day."""

    seq: int
    time_ms: int
    bid: float
    ask: float


class SymbolDay:
    """What of one symbol belongs into the file of one day. Its numbers have no holes, or it says where."""

    def __init__(self, symbol: str, start_ms: int, end_ms: int, known: Carried | None) -> None:
        """`known` is the last tick that is in files: of a day before, or perhaps of this one."""
        self.symbol, self._start_ms, self._end_ms = symbol, start_ms, end_ms
        self.last = known
        self.carried = known if known is not None and known.time_ms < start_ms else None
        self.epochs, self.sources, self.feeds = Names(), Names(), Names()
        self.rows = TickRows(self.epochs, self.sources, self.feeds)
        self.events: list[dict[str, Any]] = []
        """What else made minutes, each after the tick that came before it."""
        self.gaps: list[NumberGap] = []
        self.number = 0
        """Of ticks."""
        self.is_real = True
        """Otherwise the numbers are given to ticks that are not kept."""
        self.earlier_ms: set[int] = set()
        """When days before this one began of which something came after it."""
        self._seq = None if known is None else known.seq
        """The last number that is accounted for; None before anything is known."""
        self._seq_of_day = self._seq
        self._minutes: set[object] = set()
        self._is_over = False

    @property
    def carries(self) -> Carried | None:
        """What the next day goes on from."""
        if self.last is None or self._seq_of_day is None or not self.is_real:
            return None
        return self.last._replace(seq=self._seq_of_day)

    def begins(self, seq: int, at_ms: int) -> None:
        """An engine begins, and says how far the numbers had come."""
        if self._seq is None and seq and at_ms > self._start_ms:
            # Nobody knows which of them were of this day.
            self.gaps.append(NumberGap(self._start_ms, min(at_ms, self._end_ms), None))
        elif self._seq is not None and seq > self._seq and self.is_real:
            self._miss(self._seq, seq, at_ms)
        # Or the database is an older one, and its numbers are given again.
        self._note(seq, at_ms)

    def begins_series(self, seq: int, at_ms: int, *, simulated: bool) -> None:
        """What was numbered until now was of the other kind."""
        if self._seq is not None and seq < self._seq:
            # Written twice.
            return
        if not self.number and self.carried is None:
            self.gaps.clear()
        self.is_real = not simulated
        self._note(seq, at_ms)

    def take(self, epoch: str, tick: TickAccepted) -> None:
        if self._seq is not None and tick.seq <= self._seq:
            # Written twice.
            return
        if self._seq is not None and tick.seq > self._seq + 1:
            self._miss(self._seq, tick.seq - 1, tick.time_ms)
        self._note(tick.seq, tick.time_ms)
        if tick.time_ms >= self._end_ms:
            self._is_over = True
            return
        self.last = Carried(tick.seq, tick.time_ms, tick.bid, tick.ask)
        if tick.time_ms < self._start_ms:
            self.earlier_ms.add(tick.time_ms - tick.time_ms % DAY_MS)
        else:
            self.rows.add(epoch, tick)
            self.number += 1

    def make_minute(self, minute: EmptyMinute | HistoryMinute) -> None:
        opened_ms = minute.minute_ms if isinstance(minute, EmptyMinute) else minute.minute.opened_ms
        if opened_ms < self._start_ms:
            self.earlier_ms.add(opened_ms - opened_ms % DAY_MS)
            return
        told = minute_values(minute)
        # Of one minute several parts may have been missed, and then the whole may come.
        once = opened_ms if told["kind"] in ("flat", "history") else tuple(told.values())
        if opened_ms < self._end_ms and once not in self._minutes:
            self._minutes.add(once)
            self.events.append({"after_seq": self._seq or 0, **told})
            self.sources.number(self.events[-1]["source"])

    def end(self, seq: int) -> None:
        """The numbers are known to have come so far by now."""
        if self._seq is not None and seq > self._seq and self.is_real:
            self._miss(self._seq, seq, self._end_ms)

    def _note(self, seq: int, at_ms: int) -> None:
        self._seq = seq
        if at_ms < self._end_ms and not self._is_over:
            self._seq_of_day = seq

    def _miss(self, known: int, upto: int, at_ms: int) -> None:
        """Ticks up to this number came before this time, and are not in the journal."""
        known_ms = self.last.time_ms if self.last is not None else self._start_ms
        if not self._is_over and at_ms > self._start_ms:
            start_ms, end_ms = max(known_ms, self._start_ms), min(at_ms, self._end_ms)
            if start_ms <= end_ms:
                self.gaps.append(NumberGap(start_ms, end_ms, upto - known))


def minute_values(record: EmptyMinute | HistoryMinute) -> dict[str, Any]:
    if isinstance(record, EmptyMinute):
        return {"minute": record.minute_ms, "kind": "flat", "source": record.source}
    bar = record.minute
    prices = {name: getattr(bar, name) for name in ("open", "high", "low", "close", "volume")}
    asks = {"ask_high": bar.ask_high, "ask_low": bar.ask_low}
    kind = "part" if record.is_part else "whole" if record.replaces else "history"
    minute = {"minute": bar.opened_ms, "kind": kind, "source": bar.source, "basis": record.basis}
    return minute | prices | asks
