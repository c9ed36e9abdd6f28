"""Every watched signal of every symbol, in memory: ticks go in, closings come out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple
from uuid import UUID

from instruments.catalogue import catalogue
from market.prices.records import HistoryMinute, TickAccepted
from signals_feed.models import Evidence, Signal

from .closing import Closing, by_candle, levels_of, tick_shown
from .levels import RECENT, SymbolWatch, Watched
from .rules import (
    Exit,
    Quoted,
    SeenExtremes,
    SignalLevels,
    StoredMinute,
    StoredMinutes,
    at_current,
    by_minute,
    by_tick,
    ms,
    price,
)
from .stored_minutes import minute_of, read_minutes


class SignalToWatch(NamedTuple):
    id: UUID
    symbol: str
    instrument_id: int
    levels: SignalLevels
    entry: Quoted | None
    """The quote it was published at; None for one of a time when none was kept."""


def read_active(ids: Collection[UUID] | None = None) -> list[SignalToWatch]:
    """All of them, or those of the given ones that are active."""
    signals = Signal.objects.active()
    entries = Evidence.objects.filter(kind=Evidence.Kind.ENTRY, signal__status=Signal.Status.ACTIVE)
    if ids is not None:
        signals, entries = signals.filter(pk__in=ids), entries.filter(signal__in=ids)
    quotes = {
        pk: Quoted(bid, ask, ms(at), epoch, seq)
        for pk, bid, ask, at, epoch, seq in entries.values_list(
            "signal_id", "bid", "ask", "at", "epoch", "seq"
        )
        if bid is not None and ask is not None
    }
    return [to_watch(signal, quotes.get(signal.pk)) for signal in signals.select_related("instrument")]


def to_watch(signal: Signal, entry: Quoted | None) -> SignalToWatch:
    levels = levels_of(signal, 0 if entry is None else entry.time_ms)
    return SignalToWatch(signal.pk, signal.instrument.symbol, signal.instrument_id, levels, entry)


def judge_stored(found: Iterable[SignalToWatch], since_ms: int, until_ms: dict[str, int]) -> list[Closing]:
    """By the minutes that opened at `since_ms` or later and ended by the moment that is given for the
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
                closings.append(by_candle(each.id, *ended, seen=None))
    return closings


TICK, AFTER_GAP = Evidence.Source.TICK, Evidence.Source.FIRST_AFTER_GAP


class ActiveSignals:
    def __init__(self, epoch: Callable[[], str], close: Callable[[Closing], None], at_ms: int) -> None:
        self.watches: dict[str, SymbolWatch] = {}
        self.watched: dict[UUID, Watched] = {}
        self._epoch, self._close = epoch, close
        self._begun_ms = at_ms
        self._dropped_ms: int | None = None
        """Before then ticks were missed."""
        self._refilled: dict[str, list[StoredMinute]] | None = defaultdict(list)
        """Until all signals are watched: those that are admitted later are judged by them too, and by all
        ticks that came meanwhile."""

    def settle(self) -> None:
        self._refilled = None
        for watch in self.watches.values():
            watch.remember(RECENT)

    def clear(self, at_ms: int) -> None:
        """Begin anew; what was remembered can no longer be relied on."""
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
                self._judge(watch, watched, tick, before)

    def refill(self, record: HistoryMinute) -> None:
        """A minute out of a venue's history."""
        watch = self.watches.get(record.symbol) or self._open(record.symbol)
        facts = catalogue.known(record.symbol)
        if facts is None or record.basis == "trades":
            return
        candle = record.minute
        prices = candle.open, candle.low, candle.high, candle.ask_low, candle.ask_high
        rounded = [price(round(each, facts.digits)) for each in prices]
        minute = minute_of(record.basis, candle.opened_ms, *rounded)
        if self._refilled is not None:
            self._refilled[record.symbol].append(minute)
        for watched in watch.see(minute):
            self._judge_minute(watch, watched, minute)

    def admit(self, found: SignalToWatch) -> bool:
        """Watch a signal from the tick on that it was published at; False if that is remembered no more."""
        watch = self.watches.get(found.symbol) or self._open(found.symbol)
        if known := self.watched.get(found.id):
            self._change(watch, known, found)
            return True
        watched = Watched(found.id, found.symbol, found.levels)
        side = watch.side(watched)
        if found.entry is not None:
            watched.see(side.sign * float(found.entry.bid if watched.levels.is_buy else found.entry.ask))
        if not self.covers(found):
            watched.since_ms = self.known_from_ms(found.symbol)
        self.watched[found.id] = watched
        if not self._judge_refilled(watch, watched) and not self._judge_recent(watch, watched, found):
            watch.add(watched)
        return watched.since_ms == 0 or self._missed_ms(watch) is None

    def forget(self, signal: UUID) -> None:
        watched = self.watched.pop(signal, None)
        if watched is not None:
            self.watches[watched.symbol].remove(watched)

    def end(self, symbol: str, at_ms: int) -> None:
        """Those that are over leave at the last tick's price."""
        watch = self.watches[symbol]
        if watch.recent:
            tick = watch.recent[-1]
            for watched in list(watch.ended(at_ms)):
                exit_ = at_current(watched.levels, price(tick.bid), price(tick.ask))
                self._ended(self._closing(watch, watched, exit_, tick, TICK, at_ms))

    def covers(self, found: SignalToWatch) -> bool:
        return self.known_from_ms(found.symbol) <= found.levels.since_ms

    def known_from_ms(self, symbol: str) -> int:
        """From when on all ticks are remembered."""
        watch = self.watches.get(symbol)
        missed_ms = self._dropped_ms if watch is None else self._missed_ms(watch)
        return self._begun_ms if missed_ms is None else missed_ms

    def _missed_ms(self, watch: SymbolWatch) -> int | None:
        return self._dropped_ms if watch.dropped_ms is None else watch.dropped_ms

    def _open(self, symbol: str) -> SymbolWatch:
        watch = self.watches[symbol] = SymbolWatch(RECENT if self._refilled is None else inf)
        return watch

    def _change(self, watch: SymbolWatch, known: Watched, found: SignalToWatch) -> None:
        """It was cancelled: it goes on until the next price, and has seen what it saw."""
        best, worst = watch.side(known).extremes(known)
        sign = watch.side(known).sign
        watch.remove(known)
        again = Watched(found.id, found.symbol, found.levels)
        again.since_ms = known.since_ms
        again.best, again.worst = sign * best, sign * worst
        self.watched[found.id] = again
        watch.add(again)

    def _judge_minute(self, watch: SymbolWatch, watched: Watched, minute: StoredMinute) -> bool:
        exit_ = by_minute(watched.levels, minute)
        if exit_ is None:
            return False
        watch.remove(watched)
        self._ended(by_candle(watched.id, exit_, minute, self._seen(watch, watched)))
        return True

    def _judge_refilled(self, watch: SymbolWatch, watched: Watched) -> bool:
        minutes = [] if self._refilled is None else self._refilled[watched.symbol]
        return any(self._judge_minute(watch, watched, minute) for minute in minutes)

    def _judge_recent(self, watch: SymbolWatch, watched: Watched, found: SignalToWatch) -> bool:
        """By the remembered ticks that came after its own."""
        sign = watch.side(watched).sign
        for before, tick in pairwise([None, *watch.recent]):
            if tick is None or not self._is_after(tick, found):
                continue
            watched.see(sign * (tick.bid if watched.levels.is_buy else tick.ask))
            if by_tick(watched.levels, price(tick.bid), price(tick.ask), tick.time_ms):
                self._judge(watch, watched, tick, before)
                return True
        return False

    def _is_after(self, tick: TickAccepted, found: SignalToWatch) -> bool:
        entry = found.entry
        if entry is not None and entry.seq and entry.epoch == self._epoch():
            return tick.seq > entry.seq
        return tick.time_ms > found.levels.since_ms

    def _judge(
        self, watch: SymbolWatch, watched: Watched, tick: TickAccepted, before: TickAccepted | None
    ) -> None:
        exit_ = by_tick(watched.levels, price(tick.bid), price(tick.ask), tick.time_ms)
        if exit_ is None:
            watch.add(watched)
            return
        source = AFTER_GAP if _is_gap(before, tick) else TICK
        self._ended(self._closing(watch, watched, exit_, tick, source, tick.time_ms))

    def _closing(
        self, watch: SymbolWatch, watched: Watched, exit_: Exit, tick: TickAccepted, source: str, at_ms: int
    ) -> Closing:
        quoted = Quoted(price(tick.bid), price(tick.ask), tick.time_ms, self._epoch(), tick.seq)
        shown, seen = tick_shown(quoted), self._seen(watch, watched)
        return Closing(watched.id, exit_.price, exit_.reason, at_ms, exit_.rule, source, shown, seen)

    def _seen(self, watch: SymbolWatch, watched: Watched) -> SeenExtremes | None:
        extremes = watch.side(watched).extremes(watched)
        if not all(map(isfinite, extremes)):
            return None
        return SeenExtremes(price(max(extremes)), price(min(extremes)), watched.since_ms)

    def _ended(self, closing: Closing) -> None:
        self.watched.pop(closing.signal, None)
        self._close(closing)


def _is_gap(before: TickAccepted | None, tick: TickAccepted) -> bool:
    """As long as a quote is stale after, or the first that this process hears."""
    facts = catalogue.known(tick.symbol)
    stale_ms = 60_000 if facts is None else facts.stale_after_s * 1000
    return before is None or tick.time_ms - before.time_ms > stale_ms
