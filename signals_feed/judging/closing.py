"""The one place that closes signals. Whoever finds the row active closes it; all others come too late."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DataError, IntegrityError, transaction
from django.db.models import Field

from core.background import cancel_and_wait
from core.events.handlers import PASSING
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.fault_log import LastingFault
from core.threads import in_thread
from market.engine.store.lease import LeaseLost
from signals_feed.ledger.ledger import RESULT, Fact, LedgerEntry, Payload, closure_payload, plain
from signals_feed.models import Announcement, Evidence, Signal

from . import rules
from .rules import (
    CANCELLED,
    EXPIRED,
    MINUTE_MS,
    Exit,
    Quoted,
    SeenExtremes,
    SignalLevels,
    StoredMinute,
    exit_price,
    in_r,
    moment,
    ms,
    result,
)
from .stored_minutes import best_and_worst

logger = logging.getLogger(__name__)
closing_waits = LastingFault(logger, "Signals that were hit wait to be closed")


class Closing(NamedTuple):
    """How a signal ends, with what shows it: plain values, so that it can wait in the database."""

    signal: UUID
    price: Decimal
    reason: str
    at_ms: int
    rule: str
    source: str
    shown: dict[str, Any]
    """The tick or the minute, by the names of the evidence's columns."""
    seen: SeenExtremes | None = None
    """How far the price went, as far as somebody watched."""

    @classmethod
    def at_current(cls, signal: Signal, reason: str, quote: Quoted, at_ms: int) -> Closing:
        price = exit_price(signal.direction, quote.bid, quote.ask)
        return cls(signal.pk, price, reason, at_ms, rules.CURRENT, Evidence.Source.TICK, tick_shown(quote))


def by_candle(signal: UUID, exit_: Exit, minute: StoredMinute, seen: SeenExtremes | None) -> Closing:
    shown: dict[str, Any] = minute._asdict()
    opened_ms = shown.pop("opened_ms")
    shown["at"] = moment(opened_ms)
    at_ms = opened_ms + MINUTE_MS - 1
    return Closing(signal, exit_.price, exit_.reason, at_ms, exit_.rule, Evidence.Source.CANDLE, shown, seen)


def levels_of(signal: Signal, quoted_ms: int = 0) -> SignalLevels:
    """What a signal waits for; `quoted_ms` is the time of the quote that it was published at."""
    ends_at = min(signal.cancelled_at or signal.expires_at, signal.expires_at)
    return SignalLevels(
        signal.direction,
        signal.stop_loss,
        signal.take_profit,
        max(quoted_ms, ms(signal.published_at)),
        ms(ends_at),
        CANCELLED if signal.cancel_reason else EXPIRED,
    )


def tick_shown(quote: Quoted) -> dict[str, Any]:
    return {"at": quote.at, "bid": quote.bid, "ask": quote.ask, "epoch": quote.epoch, "seq": quote.seq}


def close_signal(closing: Closing) -> bool:
    """False if somebody else was first."""
    return bool(close_signals([closing]))


@transaction.atomic
def close_signals(closings: Sequence[Closing], hold: Callable[[], None] | None = None) -> set[UUID]:
    """The identifiers of those that this closed. `hold` raises if they are another's to close by now."""
    if hold is not None:
        hold()
    wanted = {closing.signal: closing for closing in closings}
    signals = Signal.objects.active().select_related("instrument").in_bulk(list(wanted))
    # All rows before the first event, and always in the same order: who waits for a row then holds
    # nothing that its owner waits for.
    closed = [
        (signals[pk], exit_)
        for pk in sorted(signals)
        if (exit_ := _close_row(signals[pk], wanted[pk])) is not None
    ]
    _tell(closed)
    return {signal.pk for signal, _ in closed}


def _close_row(signal: Signal, closing: Closing) -> Evidence | None:
    terms = signal.direction, signal.entry, signal.stop_loss, signal.tradable_price
    outcome = result(*terms, closing.price, signal.instrument.pip_size)
    best, worst = best_and_worst(signal, closing.price, closing.at_ms, closing.seen)
    signal.status = Signal.Status.CLOSED
    signal.close_price, signal.close_reason = closing.price, closing.reason
    # A venue's clock may be behind ours.
    signal.closed_at = max(moment(closing.at_ms), signal.published_at)
    signal.pnl, signal.pnl_percent, signal.pnl_r = outcome
    signal.best_r, signal.worst_r = in_r(*terms, best), in_r(*terms, worst)
    values = {name: getattr(signal, name) for name in ("status", *RESULT)}
    if not Signal.objects.active().filter(pk=signal.pk).update(**values):
        return None
    return Evidence(
        signal=signal,
        kind=Evidence.Kind.EXIT,
        source=closing.source,
        rule=closing.rule,
        best=best,
        worst=worst,
        **{name: _column(name).to_python(value) for name, value in closing.shown.items()},
    )


def _column(name: str) -> Field[Any, Any]:
    return Evidence._meta.get_field(name)  # type: ignore[return-value]


def measured(signal: Signal) -> Payload:
    """Staff may change an instrument; what a result was computed with stays on record."""
    return {"pip_size": plain(signal.instrument.pip_size)}


def _tell(closed: list[tuple[Signal, Evidence]]) -> None:
    announcements = []
    for signal, _ in closed:
        event = ControlEvent.objects.publish(
            EventKind.SIGNAL_CLOSED, signal=str(signal.pk), reason=signal.close_reason
        )
        announcements.append(
            Announcement(position=event.position, signal=signal, kind=Announcement.Kind.CLOSED)
        )
    if closed:
        # After the events, but locking nothing that this transaction does not hold already.
        Announcement.objects.bulk_create(announcements)
        Evidence.objects.bulk_create([exit_ for _, exit_ in closed])
        LedgerEntry.objects.append(
            [
                Fact(LedgerEntry.Kind.CLOSE, signal.pk, closure_payload(signal, exit_) | measured(signal))
                for signal, exit_ in closed
            ]
        )


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
