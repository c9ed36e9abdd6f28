"""Watches every active signal on every tick of the engine in this process, and closes it once: of two who
close at once, the one that finds the row active does.

Nothing that the database knows of is lost with the process. A tick that closes a signal is written as a
`Hit` in the transaction of the engine's checkpoint that contains the tick, together with a mark: all minutes
before it were judged. An engine that starts reads both, and all signals, before it takes a tick; minutes that
others stored after the mark are judged as minutes. What was not stored is judged by the first tick after the
gap. A publication is read within a quarter of a second and judged from the first tick after its own; only
a kill in between leaves a stretch without a judge.

A signal by rules 2 is armed when it is read, and filled by the tick that is due; followed_signal.py takes
the judge's own steps. What is armed, filled or ended waits as `Undelivered`, in the transaction in which a
hit would. Until an arm is in the ledger, ticks of its signal are only kept: they are judged once it is.

By rules 1, signals of inactive instruments wait until they are active. On a closed or stale market, cancelled
and expired ones wait for the first tick. Those of an instrument whose prices must not be passed on are judged
as all are, and close once they may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from django.db import OperationalError, transaction

from core import clock
from core.background import BackgroundLoop
from core.database import TRANSIENT
from core.fault_log import LastingFault
from core.threads import in_thread
from core.times import MINUTE_MS, epoch_ms_after, moment
from instruments.catalogue import catalogue
from market import runtime as market
from market.engine import EngineStart, SeriesEnding
from market.prices import AnyRecord, HistoryMinute, TickAccepted, interval_start
from signals_feed import record
from signals_feed.closing import Closer, Closing, Ending, note
from signals_feed.contradictions import FILL_AFTER_MS, as_stored
from signals_feed.decisions import (
    MARKET_CLOSED,
    TOO_OLD,
    WITHHELD_UNFILLED,
    Arming,
    Decision,
    read_decisions,
    write_decisions,
)
from signals_feed.exits import Tick
from signals_feed.models import Hit, Reached, Signal, WatchMark
from signals_feed.publishing.actions import end_signals, may_last_be_shown, reason_of
from signals_feed.rules import exact_price

from .active_signals import ActiveSignals, Noted
from .followed_signal import Followed
from .reading import (
    Reach,
    SignalToWatch,
    are_armed,
    is_followed,
    judge_stored,
    read_active,
    read_missed,
    read_records,
    standing,
)


# Signals do not outlive the prices that they were published on: a change of kind ends them.
@transaction.atomic
def end_series(ending: SeriesEnding, hits: Sequence[Ending], epoch: str, known: Sequence[Followed]) -> None:
    """What was decided by a tick stays. All others are cancelled at the last price, or if that must not be
    passed on, at that of their fill, which is public."""
    end_signals(ending, [each for each in hits if isinstance(each, Closing)], epoch)
    own = Signal.objects.active().filter(instrument__symbol=ending.symbol, rules=record.RULES)
    may_be_shown, ids = may_last_be_shown(ending), set(own.values_list("pk", flat=True))
    if may_be_shown:
        write_decisions([each for each in hits if isinstance(each, Decision) and each.signal in ids])
    left, at_ms = list(own.values_list("pk", flat=True)), clock.now_ms()
    followed = {each.id: each for each in known}

    def arming(asked: str, number: int, ahead_ms: int) -> Arming:
        return Arming(asked, number, at_ms, epoch, ending.seq, FILL_AFTER_MS, 0, ahead_ms)

    # Some are published in this moment, and not followed yet.
    entries = read_records([pk for pk in left if pk not in followed])
    followed |= {pk: Followed(pk, ending.symbol, each, arming) for pk, each in entries.items()}
    cause = record.KIND_CHANGED if may_be_shown else record.WITHHELD
    ends = [
        followed[pk].end_at_last(cause, at_ms, reason_of(ending), last_of(ending, followed[pk], at_ms))
        for pk in left
    ]
    if TOO_OLD in write_decisions(ends).values():
        raise OperationalError("The ledger took too long: the series ends a little later.")


def last_of(ending: SeriesEnding, followed: Followed, at_ms: int) -> Tick | None:
    """The last tick of the series, if this engine did not see it."""
    last, walk = ending.last, followed.walk
    if last is None or walk is None or walk.last.seq == ending.seq or last.time_ms < walk.fill.time_ms:
        return None
    prices = exact_price(last.bid), exact_price(last.ask)
    tick = Tick(*prices, last.time_ms, seq=ending.seq, feed=ending.source)
    return as_stored(tick, walk.fill, at_ms)


logger = logging.getLogger(__name__)
watching_waits = LastingFault(logger, "The watched signals wait for the database")
LOOK_S = 0.25

# A minute is written within a second of its end.
STORED_AFTER_MS = MINUTE_MS + 3_000
AT_ONCE = 200


def read_mark_ms() -> int:
    """The time up to which the stored minutes have been judged."""
    at = WatchMark.objects.values_list("watched_until", flat=True).first()
    return 0 if at is None else epoch_ms_after(at)


def read_hits() -> list[Ending]:
    """What another watcher noted but could no longer carry out. A version that does not know rules 2 may have
    noted closings of its own."""
    Hit.objects.exclude(signal__status=Signal.Status.ACTIVE, signal__rules=1).delete()
    hits = [msgspec.convert(hit.closing, Closing) for hit in Hit.objects.order_by("pk")]
    return [*hits, *read_decisions()]


def write_notes(
    endings: list[Ending], reached: Noted, watched_until_ms: int, *, has_read: bool = True
) -> None:
    """Runs in the transaction of the engine's checkpoint."""
    if endings:
        open_ = read_open([each.signal for each in endings])
        note([each for each in endings if each.signal in open_])
    if reached.seen:
        note_reached(reached.seen)
        transaction.on_commit(reached.written)
    mark: dict[str, Any] = {"followed": standing()} if has_read else {}
    if watched_until_ms:
        mark["watched_until"] = moment(watched_until_ms)
    if mark and not WatchMark.objects.filter(pk=1).update(**mark) and watched_until_ms:
        WatchMark.objects.create(pk=1, **mark)


def note_reached(seen: dict[UUID, Reach]) -> None:
    ids = sorted(seen)
    for begin in range(0, len(ids), AT_ONCE):
        open_ = sorted(read_open(ids[begin : begin + AT_ONCE]))
        rows = [Reached(signal_id=pk, **seen[pk]._asdict()) for pk in open_]
        columns = list(Reach._fields)
        Reached.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["signal"], update_fields=columns
        )


def read_open(signals: Collection[UUID]) -> set[UUID]:
    return set(Signal.objects.active().filter(pk__in=signals).values_list("pk", flat=True))


class SignalWatcher:
    def __init__(self) -> None:
        self.active: ActiveSignals | None = None
        """None while the engine does not run here."""
        self.closer: Closer | None = None
        self.loop = BackgroundLoop(
            "signal watcher",
            self.look,
            fault=watching_waits,
            broke="The signal watcher broke and goes on",
            before=self._woken,
            again=LOOK_S,
        )
        self._reset()

    def _reset(self) -> None:
        self._wake, self._looking = asyncio.Event(), asyncio.Lock()
        self.unread: set[UUID] = set()
        """Published or cancelled, and still to be read."""
        self._judge_later: dict[UUID, int] = {}
        """When to judge a signal by stored minutes, because some ticks after its publication were dropped."""
        self._is_new = True
        """No signal has been read yet, or all must be read again."""
        self._is_reading = self._is_broken = False
        self._unheard: list[AnyRecord] = []
        """What came since it broke."""
        self._mark_ms = 0
        """The time up to which minutes had been judged when all signals were read."""
        self._followed_ms = 0
        """The same of signals by rules 2."""
        self._closed_meanwhile: set[UUID] = set()
        """Signals closed while others were being read."""

    async def begin(self, start: EngineStart) -> None:
        self.closer = Closer(start.hold, self._note_outcome)
        await self.closer.loop.start()
        quotes = {symbol: market.quote(symbol) for symbol in start.standings}
        last = {
            symbol: (start.standings[symbol].seq, each.time_ms) for symbol, each in quotes.items() if each
        }
        self.active = ActiveSignals(start.epoch, self.closer.add, clock.now_ms(), start.fill_terms, last)
        self._reset()
        self._wake.set()
        self.hear(start.tail)
        # Before any stored minute contains ticks of the tail, which could not be distinguished in it. All
        # later ticks are judged one by one.
        await self._read_first(start.restart_numbering)
        await self.loop.start()

    async def stored(self, symbols: Collection[str]) -> None:
        try:
            found = [each for each in await in_thread(read_active) if each.symbol in symbols]
            await self._judge(found, self._mark_ms, clock.now_ms())
        except BaseException:
            # Also when cancelled: the mark stays where it is until all signals have been judged from there.
            self._is_new = self._is_broken = True
            raise

    async def end(self) -> None:
        await self.loop.stop()
        if self.closer is not None:
            await self.closer.end()
        self.active = None

    def hear(self, records: list[AnyRecord]) -> None:
        active = self.active
        if active is None:
            return
        if self._is_broken:
            self._unheard += records
            return
        try:
            for each in records:
                if type(each) is TickAccepted:
                    active.take(each)
                elif type(each) is HistoryMinute:
                    active.refill(each)
        except Exception:  # noqa: BLE001 - the engine goes on whatever breaks here
            logger.exception("A tick could not be judged: all signals are read again")
            self._is_new = self._is_broken = True
            self._unheard += records

    def notes(self, *, is_behind: bool = False) -> Callable[[], None]:
        waiting = [] if self.closer is None else self.closer.waiting()
        expected = [] if self.active is None else self.active.expected()
        is_settled = not (is_behind or self._is_new or self._is_reading or self.unread or self._judge_later)
        # The minute that is forming has been judged in part, and where clocks are wrong it is another one.
        watches = () if self.active is None else self.active.watches
        now_ms = min(map(market.own_ms, watches), default=clock.now_ms())
        until_ms = interval_start(now_ms, MINUTE_MS) if is_settled else 0
        reached = Noted({}) if self.active is None else self.active.reached()
        return partial(write_notes, [*waiting, *expected], reached, until_ms, has_read=not self._is_new)

    async def series_ends(self, ending: SeriesEnding) -> Callable[[], None]:
        """The last ticks and minutes close the signals they have hit, the last quote all others."""
        await self.look()
        active, closer = self._parts()
        followed = active.of_symbol(ending.symbol)
        if followed:
            await closer.work_off()
        hits = [*closer.waiting(), *closer.held.values()]
        return partial(end_series, ending, hits, active.epoch(), followed)

    def read_soon(self, facts: dict[str, Any]) -> None:
        if self.active is not None:
            self.unread.add(UUID(facts["signal"]))
            self._wake.set()

    def forget(self, facts: dict[str, Any]) -> None:
        if self.active is not None and self.closer is not None:
            signal = UUID(facts["signal"])
            self.active.forget(signal)
            self.closer.forget(signal)
            self.unread.discard(signal)
            self._judge_later.pop(signal, None)
            self._closed_meanwhile.add(signal)

    def close_held(self, _: dict[str, Any]) -> None:
        """Those whose prices may be passed on now."""
        if self.closer is not None:
            self.closer.try_again()

    async def _read_first(self, restart_numbering: Callable[[], Awaitable[None]]) -> None:
        while self._is_new:
            try:
                # Within a numbering an arm stays valid, and the first tick that is due was not seen.
                if not await in_thread(is_followed) and await in_thread(are_armed):
                    await restart_numbering()
                await self._read_all()
                watching_waits.over()
            except TRANSIENT as error:
                watching_waits.tell(error)
                await asyncio.sleep(LOOK_S)
            except Exception:  # noqa: BLE001 - prices do not wait for what is wrong with signals
                logger.exception("The signals could not be read before the first tick, trying again")
                return

    async def _woken(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self._wake.wait()
        self._wake.clear()

    async def look(self) -> None:
        """Read new signals, and close those that are over."""
        async with self._looking:
            if self._is_new:
                await self._read_all()
            if self.unread:
                await self._read_unread()
            await self._judge_due()
            self._end_what_is_over()
            self._end_unfilled()
            self._end_inactive()
            if self.active is not None:
                self.active.arm()

    async def _read_all(self) -> None:
        active, closer = self._parts()
        self._is_reading = True
        if self._is_broken:
            active.clear(clock.now_ms())
            self._is_broken = False
            unheard, self._unheard = self._unheard, []
            for each in unheard:
                # What breaks it again is passed over.
                self.hear([each])
                self._is_broken = False
            self._unheard = []
        self._closed_meanwhile.clear()
        hits = await in_thread(read_hits)
        for hit in hits:
            closer.add(hit)
        if any(isinstance(hit, Decision) for hit in hits):
            # What it decided is in the ledger before that is read.
            await closer.work_off()
        self._mark_ms = self._followed_ms = await in_thread(read_mark_ms)
        found = await in_thread(read_active)
        if not await in_thread(is_followed):
            self._followed_ms, due_ms = 0, clock.now_ms() + STORED_AFTER_MS
            # The minute that is forming may contain ticks that were not judged.
            self._judge_later |= {each.id: due_ms for each in found if each.record}
        await self._judge(found, self._mark_ms)
        for begin in range(0, len(found), AT_ONCE):
            self._admit(found[begin : begin + AT_ONCE])
            await asyncio.sleep(0)
        active.settle()
        self._is_new, self._is_reading = self._is_broken, False

    async def _read_unread(self) -> None:
        self._closed_meanwhile.clear()
        # Anything announced about one of them from now on is read the next time.
        unread, self.unread = self.unread, set()
        self._is_reading = True
        try:
            found = await in_thread(read_active, unread)
            active, _ = self._parts()
            if uncovered := active.uncovered(found):
                await self._judge(uncovered, 0)
            self._admit(found)
        except BaseException:
            self.unread |= unread
            raise
        finally:
            self._is_reading = False

    async def _judge(self, found: list[SignalToWatch], since_ms: int, until_ms: int | None = None) -> None:
        """Judge by the stored minutes that were over before the remembered ticks."""
        if not found:
            return
        active, closer = self._parts()
        symbols = {each.symbol for each in found}
        until = {symbol: until_ms or active.known_from_ms(symbol) for symbol in symbols}
        for closing in await in_thread(judge_stored, found, since_ms, until):
            active.forget(closing.signal)
            closer.add(closing)
        if any(each.record for each in found):
            active.see_missed(await in_thread(read_missed, found, min(since_ms, self._followed_ms), until))

    def _admit(self, found: list[SignalToWatch]) -> None:
        active, closer = self._parts()
        decided = {**closer.pending, **closer.held}
        over = {pk for pk, each in decided.items() if isinstance(each, Closing) or each.is_end}
        over |= self._closed_meanwhile
        found = [each.with_fill(decided.get(each.id)) for each in found]
        for signal in active.admit([each for each in found if each.id not in over]):
            self._judge_later[signal] = clock.now_ms() + STORED_AFTER_MS

    async def _judge_due(self) -> None:
        now_ms = clock.now_ms()
        due = [signal for signal, at_ms in self._judge_later.items() if at_ms <= now_ms]
        if due:
            await self._judge(await in_thread(read_active, due), 0, now_ms)
            for signal in due:
                self._judge_later.pop(signal, None)

    def _end_what_is_over(self) -> None:
        """Close expired and cancelled signals at the current price, if there is one."""
        active, _ = self._parts()
        for symbol, watch in active.watches.items():
            if watch.ends_ms <= (now_ms := market.own_ms(symbol)):
                facts = catalogue.find(symbol)
                if facts is not None and market.state(facts) == "open":
                    active.end(symbol, now_ms)

    def _end_unfilled(self) -> None:
        """Those that wait for a fill and cannot have one any more."""
        active, _ = self._parts()
        now_ms = clock.now_ms()
        for followed in [each for some in active.waiting.values() for each in some]:
            if followed.walk is not None or followed.unwritten or followed.case.cause:
                continue
            unsettled_ms = active.terms(followed.symbol).unsettled_ms
            if cause := self._why_unfilled(followed, now_ms, unsettled_ms):
                active.decide(followed, followed.cancel(cause, now_ms, unsettled_ms))

    def _end_inactive(self) -> None:
        """At the last price of an instrument that is no longer offered, or at the first one after it is
        again."""
        active, _ = self._parts()
        for symbol in {each.symbol for each in active.followed.values()}:
            facts = catalogue.known(symbol)
            if facts is not None and not facts.active:
                now_ms, quote = clock.now_ms(), market.quote(symbol)
                is_fresh = quote is not None and quote.age_ms(now_ms) <= facts.stale_after_s * 1000
                active.end_inactive(symbol, now_ms, is_fresh=is_fresh)

    def _why_unfilled(self, followed: Followed, now_ms: int, unsettled_ms: int) -> str:
        facts = catalogue.find(followed.symbol)
        if facts is None:
            return record.DEACTIVATED
        if facts.is_withheld:
            return record.WITHHELD
        if not facts.hours.is_open(market.own_ms(followed.symbol)):
            return MARKET_CLOSED
        return record.NO_TICK if followed.has_run_out(now_ms, unsettled_ms) else ""

    def _note_outcome(self, decision: Decision, outcome: str) -> None:
        if self.active is not None:
            self.active.note_outcome(decision, outcome)
            if outcome in (TOO_OLD, WITHHELD_UNFILLED) or (
                decision.cancel is not None and not decision.is_end
            ):
                self.unread.add(decision.signal)

    def _parts(self) -> tuple[ActiveSignals, Closer]:
        if self.active is None or self.closer is None:
            raise RuntimeError("The watcher looks only while the engine runs here.")
        return self.active, self.closer


watcher = SignalWatcher()
