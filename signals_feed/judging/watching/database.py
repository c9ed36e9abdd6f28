"""What the watcher reads from the database and writes there: closings, notes, the end of a series."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import msgspec
from django.db import DataError, IntegrityError, transaction
from django.db.models import Q

from core import clock
from core.background import cancel_and_wait
from core.events.handlers import PASSING
from core.fault_log import LastingFault
from core.threads import in_thread
from market.engine.listeners import SeriesEnding
from market.engine.store.lease import LeaseLost
from market.engine.store.series import present_kind
from market.models import IMPORTED, Candle
from signals_feed.judging.closing import Closing, by_candle, close_signals, levels_of
from signals_feed.judging.rules import (
    MINUTE_MS,
    Quoted,
    SignalLevels,
    StoredMinute,
    StoredMinutes,
    moment,
    ms,
    price,
)
from signals_feed.models import Evidence, Hit, Signal, WatchMark
from signals_feed.publishing.actions import cancel

PRICES = ("open", "low", "high", "ask_low", "ask_high")


class ActiveSignal(NamedTuple):
    id: UUID
    symbol: str
    instrument_id: int
    levels: SignalLevels
    entry: Quoted | None
    """The quote it was published at; None for one of a time when none was kept."""


def read_active(ids: Collection[UUID] | None = None) -> list[ActiveSignal]:
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
    return [active(signal, quotes.get(signal.pk)) for signal in signals.select_related("instrument")]


def active(signal: Signal, entry: Quoted | None) -> ActiveSignal:
    levels = levels_of(signal, 0 if entry is None else entry.time_ms)
    return ActiveSignal(signal.pk, signal.instrument.symbol, signal.instrument_id, levels, entry)


def judge_stored(found: Iterable[ActiveSignal], since_ms: int, until_ms: dict[str, int]) -> list[Closing]:
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


def read_minutes(instrument_id: int, since_ms: int, until_ms: int) -> list[StoredMinute]:
    if since_ms + MINUTE_MS > until_ms:
        return []
    rows = (
        Candle.objects.filter(instrument=instrument_id, simulated=present_kind(instrument_id), timeframe="1m")
        .filter(opened_at__gte=moment(since_ms), opened_at__lte=moment(until_ms - MINUTE_MS))
        .exclude(Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED))
        .order_by("opened_at")
    )
    return [
        minute_of(basis, ms(at), *prices)
        for basis, at, *prices in rows.values_list("basis", "opened_at", *PRICES)
    ]


def minute_of(basis: str, opened_ms: int, *prices: object) -> StoredMinute:
    minute = StoredMinute(opened_ms, *prices)  # type: ignore[arg-type]
    if basis == Candle.Basis.MID:
        return minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return minute


def read_mark_ms() -> int:
    """Up to where the stored minutes have been judged."""
    at = WatchMark.objects.values_list("watched_until", flat=True).first()
    return 0 if at is None else ms(at)


def read_hits() -> list[Closing]:
    """What another watcher saw and could not act upon any more."""
    Hit.objects.filter(signal__status=Signal.Status.CLOSED).delete()
    return [msgspec.convert(hit.closing, Closing) for hit in Hit.objects.order_by("pk")]


def write_notes(hits: list[Closing], watched_until_ms: int) -> None:
    if hits:
        open_ = set(
            Signal.objects.active().filter(pk__in=[hit.signal for hit in hits]).values_list("pk", flat=True)
        )
        Hit.objects.bulk_create(
            [
                Hit(signal_id=hit.signal, closing=msgspec.to_builtins(hit, str_keys=True))
                for hit in hits
                if hit.signal in open_
            ],
            ignore_conflicts=True,
        )
    if watched_until_ms:
        at = moment(watched_until_ms)
        if not WatchMark.objects.filter(pk=1).update(watched_until=at):
            WatchMark.objects.create(pk=1, watched_until=at)


logger = logging.getLogger(__name__)
closing_waits = LastingFault(logger, "Signals that were hit wait to be closed")

# In one transaction, while other writers of events wait.
MOST_AT_ONCE = 50
AGAIN_S = 0.25

# Until a clean end gives up: what still waits then is written with the engine's state.
LAST_S = 2.0
IMPOSSIBLE = (IntegrityError, DataError, ArithmeticError)


class Closer:
    def __init__(self, hold: Callable[[], None]) -> None:
        self._hold = hold
        self.pending: dict[UUID, Closing] = {}
        self.stuck: dict[UUID, Closing] = {}
        """Those that the database refuses."""
        self._wake = asyncio.Event()
        self._working = asyncio.Lock()
        self._task = asyncio.create_task(self._run(), name="signal closer")

    def add(self, closing: Closing) -> None:
        """The first that hits a signal is the one that counts."""
        if closing.signal not in self.stuck:
            self.pending.setdefault(closing.signal, closing)
            self._wake.set()

    def forget(self, signal: UUID) -> None:
        self.pending.pop(signal, None)
        self.stuck.pop(signal, None)

    def waiting(self) -> list[Closing]:
        return [*self.pending.values(), *self.stuck.values()]

    async def end(self) -> None:
        with suppress(TimeoutError, LeaseLost, *PASSING):
            async with asyncio.timeout(LAST_S):
                await self.work_off()
        if self.pending:
            logger.warning("%d signals are closed when an engine starts again", len(self.pending))
        await cancel_and_wait(self._task)

    async def work_off(self) -> None:
        async with self._working:
            while self.pending:
                await self._close_some()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.work_off()
                closing_waits.over()
            except LeaseLost:
                await self._try_again()
            except PASSING as error:
                closing_waits.tell(error)
                await self._try_again()
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                logger.exception("Signals could not be closed, trying again")
                await self._try_again()

    async def _close_some(self) -> None:
        some = list(islice(self.pending.values(), MOST_AT_ONCE))
        try:
            await in_thread(close_signals, some, self._hold)
        except IMPOSSIBLE:
            for closing in some:
                await self._close_one(closing)
        for closing in some:
            # Closed by this, or by somebody who was first.
            self.pending.pop(closing.signal, None)

    async def _close_one(self, closing: Closing) -> None:
        try:
            await in_thread(close_signals, [closing], self._hold)
        except IMPOSSIBLE:
            logger.exception("Signal %s cannot be closed; the others are", closing.signal)
            self.stuck[closing.signal] = closing

    async def _try_again(self) -> None:
        await asyncio.sleep(AGAIN_S)
        self._wake.set()


SERIES_ENDED = (
    "Its prices came from {source} and come from {next_source} now: simulated and real ones do not mix."
)


@transaction.atomic
def end_signals(ending: SeriesEnding, hits: Sequence[Closing], epoch: str) -> None:
    """Those that a tick has hit are closed by it, all others cancelled at the last quote."""
    own = Signal.objects.active().filter(instrument__symbol=ending.symbol)
    close_signals([hit for hit in hits if own.filter(pk=hit.signal).exists()])
    signals = list(own.select_related("instrument"))
    for signal in signals:
        if not signal.cancel_reason:
            cancel(signal, reason=_reason(ending), by="market")
    at_ms = clock.now_ms()
    cancelled = Signal.CloseReason.CANCELLED
    close_signals(
        [
            Closing.at_current(signal, cancelled, _last_quote(ending, signal, epoch), at_ms)
            for signal in signals
        ]
    )


def _reason(ending: SeriesEnding) -> str:
    return SERIES_ENDED.format(next_source=ending.next_source, source=ending.source)[:200]


def _last_quote(ending: SeriesEnding, signal: Signal, epoch: str) -> Quoted:
    """Of the series that ends. Should nobody know it any more, the quote at publication was of it too."""
    last = ending.last
    if last is not None:
        digits = signal.instrument.digits
        bid, ask = (price(round(each, digits)) for each in (last.bid, last.ask))
        return Quoted(bid, ask, last.time_ms, epoch, ending.seq)
    entry = Evidence.objects.filter(signal=signal, kind=Evidence.Kind.ENTRY).first()
    if entry is None or entry.bid is None or entry.ask is None:
        return Quoted(signal.tradable_price, signal.tradable_price, ms(signal.published_at))
    return Quoted(entry.bid, entry.ask, ms(entry.at), entry.epoch, entry.seq)
