"""Every watched signal, in memory: ticks come in, and the closings that they cause go out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise
from math import inf
from typing import NamedTuple
from uuid import UUID

from core import clock
from instruments.catalogue import catalogue
from market.engine import FillTerms
from market.prices import HistoryMinute, TickAccepted
from signals_feed.closing import Closing, minute_of
from signals_feed.contradictions import MOST_AHEAD_MS
from signals_feed.decisions import CLOSED, INACTIVE, UNARMED, WITHHELD_UNFILLED, WRITTEN, Arming, Decision
from signals_feed.exits import Exit, at_current, by_minute, by_tick
from signals_feed.levels import RECENT, SymbolWatch, Watched
from signals_feed.models import Evidence
from signals_feed.record import DEACTIVATED, MOST_FEEDS, WITHHELD, Item
from signals_feed.rules import Quoted, SeenExtremes, StoredMinute, exact_price

from .followed_signal import Followed
from .reading import Reach, SignalToWatch


class Noted(NamedTuple):
    """How far prices went, as a checkpoint says it."""

    seen: dict[UUID, Reach]
    unnoted: dict[UUID, Reach] = {}  # noqa: RUF012 - never changed

    def written(self) -> None:
        for signal, seen in self.seen.items():
            if self.unnoted.get(signal) is seen:
                del self.unnoted[signal]


# The ledger takes a first arm within five seconds, so the one that writes it has two.
CLOCK_AWAITED_MS = 3_000

TICK, AFTER_GAP = Evidence.Source.TICK, Evidence.Source.FIRST_AFTER_GAP


class ActiveSignals:
    def __init__(
        self,
        epoch: Callable[[], str],
        close: Callable[[Closing | Decision], None],
        at_ms: int,
        terms: Callable[[str], FillTerms],
        last: Mapping[str, tuple[int, int]],
    ) -> None:
        self.watches: dict[str, SymbolWatch] = {}
        self.watched: dict[UUID, Watched] = {}
        self.followed: dict[UUID, Followed] = {}
        """Those by rules 2."""
        self._missed: dict[str, list[StoredMinute]] = {}
        self._reach: dict[str, object] = {}
        self._unnoted: dict[UUID, Reach] = {}
        self.waiting: dict[str, list[Followed]] = {}
        """By symbol, those of them for which every tick counts; the others are watched."""
        self.epoch, self._close = epoch, close
        self._terms = terms
        self._last = dict(last)
        """Number and time of the last tick before the remembered ones."""
        self._begun_ms = at_ms
        self._dropped_ms: int | None = None
        """Ticks before this time were missed."""
        self._refilled: dict[str, list[StoredMinute]] | None = defaultdict(list)
        """Minutes that arrived before all signals were watched: a signal that is admitted later is judged by
        them too."""

    def settle(self) -> None:
        self._refilled, self._missed = None, {}
        for watch in self.watches.values():
            watch.remember(RECENT)

    def clear(self, at_ms: int) -> None:
        """Start over; the remembered ticks can no longer be relied on."""
        for watched in self.watched.values():
            if followed := self.followed.get(watched.id):
                self._bring_up(followed, watched)
        self._last |= {
            symbol: (watch.recent[-1].seq, watch.recent[-1].time_ms)
            for symbol, watch in self.watches.items()
            if watch.recent
        }
        self.watches.clear()
        self.watched.clear()
        for followed in self.followed.values():
            self._wait(followed)
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
        if watch.is_awaited:
            self._go_on(tuple(self.waiting[tick.symbol]), self._quote(tick))

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
        self._go_on(tuple(self.waiting.get(record.symbol, ())), minute)

    def uncovered(self, found: Iterable[SignalToWatch]) -> list[SignalToWatch]:
        """Those that the remembered ticks do not judge alone. A signal that is watched has been judged by
        every tick, so a cancellation judges nothing of the past again."""
        old = (each for each in found if not each.record)
        return [each for each in old if each.id not in self.watched and not self._covers(each)]

    def admit(self, found: Iterable[SignalToWatch]) -> list[UUID]:
        """Watch the signals from the ticks they were published at; returns those whose tick is no longer
        remembered."""
        for each in found:
            if each.record:
                self._follow(each)
        return [each.id for each in found if not each.record and not self._admit(each)]

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
        followed = self.followed.pop(signal, None)
        if followed is not None:
            self._wait_no_more(followed)

    def end(self, symbol: str, at_ms: int) -> None:
        """Close the signals that have expired or were cancelled, at the price of the last tick."""
        watch = self.watches[symbol]
        if watch.recent:
            quote = self._quote(watch.recent[-1])
            for watched in list(watch.ended(at_ms)):
                if followed := self.followed.get(watched.id):
                    self._end_at_next(followed, watched)
                    continue
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
        watch.is_awaited = symbol in self.waiting
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
        if followed := self.followed.get(watched.id):
            self._bring_up(followed, watched)
            self._go_on((followed,), minute)
            return followed.id not in self.followed
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
        if followed := self.followed.get(watched.id):
            self._bring_up(followed, watched, upto=-2)
            self._go_on((followed,), quote)
            if followed.id in self.followed:
                self._end_at_next(followed, watched)
            return True
        exit_ = by_tick(watched.levels, quote)
        if exit_ is None:
            return False
        facts = catalogue.known(tick.symbol)
        stale_ms = 60_000 if facts is None else facts.stale_after_s * 1000
        # After a silence that makes a quote stale, or if it is the first tick in this process.
        is_after_gap = before is None or tick.time_ms - before.time_ms > stale_ms
        source = AFTER_GAP if is_after_gap else TICK
        self._close_by_quote(watch, watched, exit_, quote, source, tick.time_ms)
        return True

    def _quote(self, tick: TickAccepted) -> Quoted:
        epoch = self.epoch()
        prices = exact_price(tick.bid), exact_price(tick.ask)
        made = Quoted(*prices, tick.time_ms, epoch, tick.seq, tick.accepted_ms, tick.feed)
        return made._replace(settled=tick.settled, unsettled_ms=tick.unsettled_ms)

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

    # By rules 2.

    def _follow(self, found: SignalToWatch) -> None:
        watch = self.watches.get(found.symbol) or self._open(found.symbol)
        followed = self.followed.get(found.id)
        if followed is not None:
            if watched := self.watched.pop(found.id, None):
                self._bring_up(followed, watched)
                watch.remove(watched)
            followed.read(found.record)
            self._place(followed)
            return
        snapshot = partial(self._snapshot, found.symbol)
        followed = self.followed[found.id] = Followed(found.id, found.symbol, found.record, snapshot)
        followed.inherit(self.epoch())
        if followed.walk is not None and (reached := found.reached):
            followed.walk.seen += reached.high, reached.low
            followed.walk.others |= {*filter(None, reached.others.split("+"))}
        if followed.stale and (lacking := followed.lacking):
            self._close(followed.arm(lacking))
        refilled = () if self._refilled is None else self._refilled[found.symbol]
        for minute in (*self._missed.get(found.symbol, ()), *refilled):
            self._go_on((followed,), minute)
        for tick in watch.recent:
            self._go_on((followed,), self._quote(tick))
        self._place(followed)

    def _go_on(self, some: Iterable[Followed], item: Item) -> None:
        for followed in some:
            if decision := followed.take(item):
                self.decide(followed, decision)

    def decide(self, followed: Followed, decision: Decision) -> None:
        facts = catalogue.known(followed.symbol)
        if decision.fill is not None and facts is not None and facts.is_withheld:
            decision = followed.cancel(WITHHELD, clock.now_ms(), self._terms(followed.symbol).unsettled_ms)
        self._close(decision)
        if followed.is_over:
            self.forget(followed.id)
        else:
            self._place(followed)

    def see_missed(self, minutes: dict[str, list[StoredMinute]]) -> None:
        """What was stored while no watcher ran."""
        self._missed = minutes
        for followed in [each for each in self.followed.values() if each.symbol in minutes]:
            if watched := self.watched.get(followed.id):
                self._bring_up(followed, watched)
            for minute in minutes[followed.symbol]:
                self._go_on((followed,), minute)

    def note_outcome(self, decision: Decision, outcome: str) -> None:
        """Its outcome in the database."""
        followed = self.followed.get(decision.signal)
        if followed is None:
            return
        if outcome in (CLOSED, UNARMED, WITHHELD_UNFILLED) or (outcome == WRITTEN and decision.is_end):
            self.forget(followed.id)
        elif followed.unwritten and set(followed.unwritten) <= set(decision.arms):
            if found := followed.armed(are_written=outcome == WRITTEN):
                self.decide(followed, found)
            else:
                self._place(followed)

    def arm(self) -> None:
        """Whatever is asked for and not armed."""
        for followed in [each for some in self.waiting.values() for each in some]:
            is_free = not (followed.unwritten or self._awaits_clock(followed))
            if is_free and (lacking := followed.lacking):
                self._close(followed.arm(lacking))

    def _awaits_clock(self, followed: Followed) -> bool:
        """Whether its venue has yet to say what time it is, and no arm says it either."""
        if self._terms(followed.symbol).ahead_ms is not None or any(followed.case.arms.values()):
            return False
        return 0 <= clock.now_ms() - followed.case.levels.since_ms < CLOCK_AWAITED_MS

    def expected(self) -> list[Decision]:
        found = (each.expected() for some in self.waiting.values() for each in some)
        return [decision for decision in found if decision is not None]

    def reached(self) -> Noted:
        """How far the prices went, of those of whom the database does not know it."""
        for symbol, watch in self.watches.items():
            reach = watch.buys.reach, watch.sells.reach, watch.changes
            if self._reach.get(symbol) == reach:
                continue
            self._reach[symbol] = reach
            for watched in (*watch.buys.all_watched(), *watch.sells.all_watched()):
                followed = self.followed.get(watched.id)
                if followed and followed.walk and (seen := watch.seen(watched)):
                    others = "+".join(sorted(followed.walk.others | watch.others(watched)))
                    self._unnoted[watched.id] = Reach(seen.high, seen.low, others[:MOST_FEEDS])
        return Noted(dict(self._unnoted), self._unnoted)

    def of_symbol(self, symbol: str) -> list[Followed]:
        """Brought up to the last tick."""
        own = [each for each in self.followed.values() if each.symbol == symbol]
        for followed in own:
            if watched := self.watched.get(followed.id):
                self._bring_up(followed, watched)
        return own

    def end_inactive(self, symbol: str, at_ms: int, *, is_fresh: bool) -> None:
        watch = self.watches.get(symbol)
        is_known = watch is not None and bool(watch.recent)
        for followed in self.of_symbol(symbol):
            if followed.walk is None or followed.unwritten or followed.case.cause:
                continue
            # After a restart, the last tick is unknown here.
            if is_fresh and is_known:
                decision = followed.end_at_last(DEACTIVATED, at_ms, "", None)
                followed.is_over = True
            else:
                decision = followed.cancel_at_next(INACTIVE, at_ms, self._terms(symbol).unsettled_ms)
            self.decide(followed, decision)

    def terms(self, symbol: str) -> FillTerms:
        return self._terms(symbol)

    def _place(self, followed: Followed) -> None:
        """Every tick is judged for it, or it is watched."""
        if followed.is_waiting or followed.unwritten:
            if watched := self.watched.pop(followed.id, None):
                self._bring_up(followed, watched)
                self.watches[followed.symbol].remove(watched)
            self._wait(followed)
        elif followed.walk is not None and followed.id not in self.watched:
            self._wait_no_more(followed)
            watched = self.watched[followed.id] = Watched(followed.id, followed.symbol, followed.walk.levels)
            for price in followed.walk.seen:
                watched.see_quote(float(price), float(price))
            self.watches[followed.symbol].add(watched)

    def _end_at_next(self, followed: Followed, watched: Watched) -> None:
        """It has expired, and waits for a settled tick."""
        self._bring_up(followed, watched)
        self._leave(self.watches[watched.symbol], watched)
        followed.is_at_end = True
        self._place(followed)

    def _wait(self, followed: Followed) -> None:
        waiting = self.waiting.setdefault(followed.symbol, [])
        if followed not in waiting:
            waiting.append(followed)
        if watch := self.watches.get(followed.symbol):
            watch.is_awaited = True

    def _wait_no_more(self, followed: Followed) -> None:
        waiting = self.waiting.get(followed.symbol, [])
        if followed in waiting:
            waiting.remove(followed)
        if not waiting:
            self.waiting.pop(followed.symbol, None)
            if watch := self.watches.get(followed.symbol):
                watch.is_awaited = False

    def _bring_up(self, followed: Followed, watched: Watched, upto: int = -1) -> None:
        """Tell the judge what was seen while it was watched, up to that one of the remembered ticks."""
        walk, watch = followed.walk, self.watches[watched.symbol]
        before = watch.recent[upto] if len(watch.recent) >= -upto else None
        if walk is None:
            return
        if seen := watch.seen(watched):
            walk.seen = [*walk.seen, seen.high, seen.low]
        walk.others |= watch.others(watched)
        _, last_ms = self._last.get(watched.symbol, (0, 0))
        if before is not None and walk.follows(last := self._quote(before)):
            walk.last = last
        elif before is None and last_ms > walk.last.time_ms:
            walk.last = walk.last._replace(time_ms=last_ms)

    def _snapshot(self, symbol: str, asked: str, number: int, before_ms: int) -> Arming:
        watch, terms = self.watches.get(symbol), self._terms(symbol)
        seq, _ = self._last.get(symbol, (0, 0))
        if watch is not None and watch.recent:
            seq = watch.recent[-1].seq
        # An engine that has just started does not know the venue's time yet.
        ahead_ms = before_ms if terms.ahead_ms is None else terms.ahead_ms
        ahead_ms = max(-MOST_AHEAD_MS, min(ahead_ms, MOST_AHEAD_MS))
        where = self.epoch(), seq, terms.wait_ms, terms.unsettled_ms, ahead_ms
        return Arming(asked, number, clock.now_ms(), *where)
