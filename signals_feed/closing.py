"""The one place that closes signals: the first to find the row active closes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DataError, IntegrityError, transaction

from core.background import BackgroundLoop
from core.database import TRANSIENT
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.fault_log import LastingFault
from core.threads import in_thread
from core.times import MINUTE_MS, moment
from market.store import LeaseLost
from signals_feed import rules
from signals_feed.ledger.ledger import RESULT, Fact, LedgerEntry, closure_payload, plain
from signals_feed.models import Announcement, Evidence, Signal
from signals_feed.rules import Exit, Quoted, SeenExtremes, StoredMinute, exit_price, in_r, result

from .stored_minutes import prices_known

logger = logging.getLogger(__name__)
closing_waits = LastingFault(logger, "Signals that were hit wait to be closed")


class Closing(NamedTuple):
    """How a signal ends, with its evidence, in plain values that can wait in the database."""

    signal: UUID
    price: Decimal
    reason: str
    at_ms: int
    rule: str
    source: str
    shown: dict[str, Any]
    """The tick or the minute, keyed by the evidence's columns."""
    seen: SeenExtremes | None = None
    """How far the price went while the signal was watched."""

    @classmethod
    def at_current(cls, signal: Signal, reason: str, quote: Quoted, at_ms: int) -> Closing:
        price = exit_price(signal.direction, quote.bid, quote.ask)
        return cls(signal.pk, price, reason, at_ms, rules.CURRENT, Evidence.Source.TICK, quote.shown)

    @classmethod
    def by_candle(cls, signal: UUID, exit_: Exit, minute: StoredMinute, seen: SeenExtremes | None) -> Closing:
        at_ms, source = minute.opened_ms + MINUTE_MS - 1, Evidence.Source.CANDLE
        return cls(signal, exit_.price, exit_.reason, at_ms, exit_.rule, source, minute.shown, seen)


def close_signal(closing: Closing) -> bool:
    """False if it was closed before."""
    return bool(close_signals([closing]))


@transaction.atomic
def close_signals(closings: Sequence[Closing], hold: Callable[[], None] | None = None) -> set[UUID]:
    """Returns the ids of the signals it closed. `hold` raises if another engine has taken over."""
    wanted = {closing.signal: closing for closing in closings}
    if hold is not None:
        hold()
    active = Signal.objects.active()
    signals = active.select_related("instrument").in_bulk(list(wanted))
    closed: dict[UUID, Evidence] = {}
    # All rows before the first event, and always in the same order: a writer that waits for a row then
    # holds nothing that the row's owner waits for.
    for pk in sorted(signals):
        exit_ = _exit_of(signals[pk], wanted[pk])
        values = {name: getattr(signals[pk], name) for name in ("status", *RESULT)}
        if active.filter(pk=pk).update(**values):
            closed[pk] = exit_
    if closed:
        _announce(closed.values())
    return set(closed)


def _exit_of(signal: Signal, closing: Closing) -> Evidence:
    """Set the signal's result and return its evidence."""
    terms = signal.direction, signal.entry, signal.stop_loss, signal.tradable_price
    best, worst = best_and_worst(signal, closing)
    signal.status = Signal.Status.CLOSED
    signal.close_price, signal.close_reason = closing.price, closing.reason
    # A venue's clock may be behind ours.
    signal.closed_at = max(moment(closing.at_ms), signal.published_at)
    signal.pnl, signal.pnl_percent, signal.pnl_r = result(*terms, closing.price, signal.instrument.pip_size)
    signal.best_r, signal.worst_r = in_r(*terms, best), in_r(*terms, worst)
    columns = {field.name: field for field in Evidence._meta.concrete_fields}
    # A closing that waited in the database has its values as text.
    shown = {name: columns[name].to_python(value) for name, value in closing.shown.items()}
    return Evidence(
        signal=signal,
        kind=Evidence.Kind.EXIT,
        source=closing.source,
        rule=closing.rule,
        best=best,
        worst=worst,
        **shown,
    )


def best_and_worst(signal: Signal, closing: Closing) -> tuple[Decimal, Decimal]:
    """The extremes of the exit side, completed by the stored minutes where nobody watched."""
    seen, prices = closing.seen, [closing.price]
    if seen is not None:
        prices += [seen.high, seen.low]
    if seen is None or seen.since_ms:
        prices += prices_known(signal, closing.at_ms if seen is None else seen.since_ms)
    high, low = max(prices), min(prices)
    # The signal ends at its target: the publisher got none of what the tick showed beyond it.
    if signal.direction == "buy":
        return min(high, signal.take_profit), low
    return max(low, signal.take_profit), high


def _announce(exits: Collection[Evidence]) -> None:
    announcements, facts = [], []
    for exit_ in exits:
        signal = exit_.signal
        event = ControlEvent.objects.publish(
            EventKind.SIGNAL_CLOSED, signal=str(signal.pk), reason=signal.close_reason
        )
        announcements.append(
            Announcement(position=event.position, signal=signal, kind=Announcement.Kind.CLOSED)
        )
        # Staff may change the instrument later; the ledger keeps what the result was computed with.
        measured = {"pip_size": plain(signal.instrument.pip_size)}
        facts.append(Fact(LedgerEntry.Kind.CLOSE, signal.pk, closure_payload(signal, exit_) | measured))
    # After the events, but these rows lock nothing that the transaction does not hold already.
    Announcement.objects.bulk_create(announcements)
    Evidence.objects.bulk_create(exits)
    LedgerEntry.objects.append(facts)


# Other writers of events wait for this transaction.
MOST_AT_ONCE = 50
RETRY_S = 0.25

# A clean end gives up after this; what still waits is then written with the engine's state.
LAST_S = 2.0
IMPOSSIBLE = (IntegrityError, DataError, ArithmeticError)


class Closer:
    def __init__(self, hold: Callable[[], None]) -> None:
        self._hold = hold
        self.pending: dict[UUID, Closing] = {}
        self.refused: dict[UUID, Closing] = {}
        """Closings that the database refuses."""
        self._wake = asyncio.Event()
        self._working = asyncio.Lock()
        self.loop = BackgroundLoop(
            "signal closer",
            self._work,
            fault=closing_waits,
            broke="Signals could not be closed, trying again",
            before=self._wake.wait,
            again=RETRY_S,
        )

    def add(self, closing: Closing) -> None:
        """The first closing of a signal counts."""
        if closing.signal not in self.refused:
            self.pending.setdefault(closing.signal, closing)
            self._wake.set()

    def forget(self, signal: UUID) -> None:
        self.pending.pop(signal, None)
        self.refused.pop(signal, None)

    def waiting(self) -> list[Closing]:
        return [*self.pending.values(), *self.refused.values()]

    async def end(self) -> None:
        with suppress(TimeoutError, LeaseLost, *TRANSIENT):
            async with asyncio.timeout(LAST_S):
                await self.work_off()
        if self.pending:
            logger.warning("%d signals are closed when an engine starts again", len(self.pending))
        await self.loop.stop()

    async def work_off(self) -> None:
        async with self._working:
            while self.pending:
                await self._close(list(islice(self.pending.values(), MOST_AT_ONCE)))

    async def _work(self) -> None:
        try:
            await self.work_off()
        except LeaseLost:
            await asyncio.sleep(RETRY_S)
        else:
            self._wake.clear()

    async def _close(self, some: list[Closing]) -> None:
        try:
            await in_thread(close_signals, some, self._hold)
        except IMPOSSIBLE:
            if len(some) > 1:
                for closing in some:
                    await self._close([closing])
                return
            logger.exception("Signal %s cannot be closed; the others are", some[0].signal)
            self.refused[some[0].signal] = some[0]
        for closing in some:
            # It is closed now, by this or by somebody who came first.
            self.pending.pop(closing.signal, None)
