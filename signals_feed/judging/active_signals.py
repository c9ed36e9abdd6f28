"""Every watched signal, in memory: ticks come in, and the closings that they cause go out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from math import inf
from typing import NamedTuple
from uuid import UUID

from core.times import epoch_ms_after
from instruments.catalogue import catalogue
from market.prices import HistoryMinute, TickAccepted
from signals_feed.closing import Closing
from signals_feed.exits import CANCELLED, EXPIRED, Exit, SignalLevels, at_current, by_minute, by_tick
from signals_feed.levels import RECENT, SymbolWatch, Watched
from signals_feed.models import Evidence, Signal
from signals_feed.rules import Quoted, SeenExtremes, StoredMinute, StoredMinutes, exact_price
from signals_feed.stored_minutes import minute_of, read_minutes


class SignalToWatch(NamedTuple):
    id: UUID
    symbol: str
    instrument_id: int
    levels: SignalLevels
    entry: Quoted | None
    """The quote it was published at; None for a signal older than this record."""

    @classmethod
    def of(cls, signal: Signal, evidence: Evidence | None) -> SignalToWatch:
        entry = None if evidence is None else evidence.quote
        ends_at = min(signal.cancelled_at or signal.expires_at, signal.expires_at)
        levels = SignalLevels(
            signal.direction,
            signal.stop_loss,
            signal.take_profit,
            max(0 if entry is None else entry.time_ms, epoch_ms_after(signal.published_at)),
            epoch_ms_after(ends_at),
            CANCELLED if signal.cancel_reason else EXPIRED,
        )
        return cls(signal.pk, signal.instrument.symbol, signal.instrument_id, levels, entry)


def read_active(ids: Collection[UUID] | None = None) -> list[SignalToWatch]:
    """All active signals, or those among the given ones."""
    signals = Signal.objects.active().select_related("instrument")
    entries = Evidence.objects.filter(kind=Evidence.Kind.ENTRY, signal__status=Signal.Status.ACTIVE)
    if ids is not None:
        signals, entries = signals.filter(pk__in=ids), entries.filter(signal__in=ids)
    entry_of = {entry.signal_id: entry for entry in entries}
    return [SignalToWatch.of(signal, entry_of.get(signal.pk)) for signal in signals]


def judge_stored(found: Iterable[SignalToWatch], since_ms: int, until_ms: dict[str, int]) -> list[Closing]:
    """Judge by the minutes that opened at `since_ms` or later and were over at the moment given for their
    symbol."""
    by_instrument = defaultdict(list)
    for each in found:
        by_instrument[each.instrument_id, each.symbol].append(each)
    closings = []
    for (instrument_id, symbol), own in by_instrument.items():
        first_ms = max(since_ms, min(each.levels.since_ms for each in own))
        minutes = StoredMinutes(read_minutes(instrument_id, first_ms, until_ms[symbol]))
        for each in own:
            if ended := minutes.first_exit(each.levels):
                closings.append(Closing.by_candle(each.id, *ended, seen=None))
    return closings


TICK, AFTER_GAP = Evidence.Source.TICK, Evidence.Source.FIRST_AFTER_GAP


class ActiveSignals:
    def __init__(self, epoch: Callable[[], str], close: Callable[[Closing], None], at_ms: int) -> None:
        self.watches: dict[str, SymbolWatch] = {}
        self.watched: dict[UUID, Watched] = {}
        self.epoch, self._close = epoch, close
        self._begun_ms = at_ms
        self._dropped_ms: int | None = None
        """Ticks before this time were missed."""
        self._refilled: dict[str, list[StoredMinute]] | None = defaultdict(list)
        """Minutes that arrived before all signals were watched: a signal that is admitted later is judged by
        them too."""

    def settle(self) -> None:
        self._refilled = None
        for watch in self.watches.values():
            watch.remember(RECENT)

    def clear(self, at_ms: int) -> None:
        """Start over; the remembered ticks can no longer be relied on."""
        self.watches.clear()
        self.watched.clear()
        self._refilled = defaultdict(list)
        self._begun_ms = self._dropped_ms = at_ms

    def take(self, tick: TickAccepted) -> None:
        watch = self.watches.get(tick.symbol)
        if watch is None:
            watch = self._open(tick.symbol)
        if met := watch.take(tick):
            before = watch.recent[-2] if len(watch.recent) > 1 else None
            for watched in met:
                if not self._judge(watch, watched, tick, before):
                    watch.add(watched)

    def refill(self, record: HistoryMinute) -> None:
        """Judge by a minute from a venue's history."""
        watch = self.watches.get(record.symbol) or self._open(record.symbol)
        facts = catalogue.known(record.symbol)
        if facts is None or record.basis == "trades":
            return
        candle = record.minute
        prices = candle.open, candle.low, candle.high, candle.ask_low, candle.ask_high
        rounded = [exact_price(round(each, facts.digits)) for each in prices]
        minute = minute_of(record.basis, candle.opened_ms, *rounded)
        if self._refilled is not None:
            self._refilled[record.symbol].append(minute)
        for watched in watch.see(minute):
            self._judge_minute(watch, watched, minute)

    def uncovered(self, found: Iterable[SignalToWatch]) -> list[SignalToWatch]:
        """Those that the remembered ticks do not judge alone. A signal that is watched has been judged by
        every tick, so a cancellation judges nothing of the past again."""
        return [each for each in found if each.id not in self.watched and not self._covers(each)]

    def admit(self, found: Iterable[SignalToWatch]) -> list[UUID]:
        """Watch the signals from the ticks they were published at; returns those whose tick is no longer
        remembered."""
        return [each.id for each in found if not self._admit(each)]

    def _admit(self, found: SignalToWatch) -> bool:
        watch = self.watches.get(found.symbol) or self._open(found.symbol)
        if known := self.watched.get(found.id):
            self._change(watch, known, found)
            return True
        since_ms = 0 if self._covers(found) else self.known_from_ms(found.symbol)
        watched = self.watched[found.id] = Watched(found.id, found.symbol, found.levels)
        watched.since_ms = since_ms
        if found.entry is not None:
            watched.see_quote(float(found.entry.bid), float(found.entry.ask))
        watch.add(watched)
        if not self._judge_refilled(watch, watched):
            self._judge_recent(watch, watched, found)
        return since_ms == 0 or self._missed_ms(watch) is None

    def forget(self, signal: UUID) -> None:
        watched = self.watched.pop(signal, None)
        if watched is not None:
            self.watches[watched.symbol].remove(watched)

    def end(self, symbol: str, at_ms: int) -> None:
        """Close the signals that have expired or were cancelled, at the price of the last tick."""
        watch = self.watches[symbol]
        if watch.recent:
            quote = self._quote(watch.recent[-1])
            for watched in list(watch.ended(at_ms)):
                self._close_by_quote(watch, watched, at_current(watched.levels, quote), quote, TICK, at_ms)

    def _covers(self, found: SignalToWatch) -> bool:
        return self.known_from_ms(found.symbol) <= found.levels.since_ms

    def known_from_ms(self, symbol: str) -> int:
        """The time since which all ticks are remembered."""
        watch = self.watches.get(symbol)
        missed_ms = self._dropped_ms if watch is None else self._missed_ms(watch)
        return self._begun_ms if missed_ms is None else missed_ms

    def _missed_ms(self, watch: SymbolWatch) -> int | None:
        return self._dropped_ms if watch.dropped_ms is None else watch.dropped_ms

    def _open(self, symbol: str) -> SymbolWatch:
        watch = self.watches[symbol] = SymbolWatch(RECENT if self._refilled is None else inf)
        return watch

    def _change(self, watch: SymbolWatch, known: Watched, found: SignalToWatch) -> None:
        """A cancelled signal is watched until the next price and keeps the extremes it has seen."""
        side = watch.side(known)
        best, worst = side.extremes(known)
        watch.remove(known)
        again = Watched(found.id, found.symbol, found.levels)
        again.since_ms = known.since_ms
        again.best, again.worst = side.sign * best, side.sign * worst
        self.watched[found.id] = again
        watch.add(again)

    def _judge_minute(self, watch: SymbolWatch, watched: Watched, minute: StoredMinute) -> bool:
        exit_ = by_minute(watched.levels, minute)
        if exit_ is None:
            return False
        seen = self._leave(watch, watched)
        self._close(Closing.by_candle(watched.id, exit_, minute, seen))
        return True

    def _judge_refilled(self, watch: SymbolWatch, watched: Watched) -> bool:
        minutes = [] if self._refilled is None else self._refilled[watched.symbol]
        return any(self._judge_minute(watch, watched, minute) for minute in minutes)

    def _judge_recent(self, watch: SymbolWatch, watched: Watched, found: SignalToWatch) -> None:
        """Judge by the remembered ticks that came after the one it was published at."""
        entry, since_ms = found.entry, found.levels.since_ms
        # Ticks of another numbering can only be compared by their time.
        after_seq = entry.seq if entry is not None and entry.epoch == self.epoch() else 0
        for before, tick in pairwise([None, *watch.recent]):
            if tick is None or (tick.seq <= after_seq if after_seq else tick.time_ms <= since_ms):
                continue
            watched.see_quote(tick.bid, tick.ask)
            if self._judge(watch, watched, tick, before):
                break

    def _judge(
        self, watch: SymbolWatch, watched: Watched, tick: TickAccepted, before: TickAccepted | None
    ) -> bool:
        """Whether the tick closes the signal."""
        quote = self._quote(tick)
        exit_ = by_tick(watched.levels, quote)
        if exit_ is None:
            return False
        facts = catalogue.known(tick.symbol)
        stale_ms = 60_000 if facts is None else facts.stale_after_s * 1000
        # After a silence that makes a quote stale, or as the first tick that this process hears.
        is_after_gap = before is None or tick.time_ms - before.time_ms > stale_ms
        source = AFTER_GAP if is_after_gap else TICK
        self._close_by_quote(watch, watched, exit_, quote, source, tick.time_ms)
        return True

    def _quote(self, tick: TickAccepted) -> Quoted:
        epoch = self.epoch()
        return Quoted(exact_price(tick.bid), exact_price(tick.ask), tick.time_ms, epoch, tick.seq)

    def _close_by_quote(
        self, watch: SymbolWatch, watched: Watched, exit_: Exit, quote: Quoted, source: str, at_ms: int
    ) -> None:
        price, reason, rule = exit_
        seen = self._leave(watch, watched)
        self._close(Closing(watched.id, price, reason, at_ms, rule, source, quote.shown, seen))

    def _leave(self, watch: SymbolWatch, watched: Watched) -> SeenExtremes | None:
        """Stop watching it; returns the extremes seen until then."""
        watch.remove(watched)
        self.watched.pop(watched.id, None)
        return watch.seen(watched)
