"""Closes what waits for a tradable price: cancelled and expired signals."""

from __future__ import annotations

import asyncio
import logging

from django.db import DataError, IntegrityError, InterfaceError, OperationalError
from django.utils import timezone

from accounts.exceptions import Overloaded
from accounts.tasks import end
from accounts.threads import in_thread
from instruments.catalogue import catalogue
from market import services as market

from .models import Signal
from .prices import price
from .quotes import Quoted
from .services import Closing, close

logger = logging.getLogger(__name__)

LOOK_S = 1.0


class Watcher:
    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="signal watcher")

    async def stop(self) -> None:
        await end(self._task)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await in_thread(close_due)
            except (OperationalError, InterfaceError, Overloaded) as error:
                logger.warning("Signals that are due wait for the database: %s", error)
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                logger.exception("Signals that are due could not be closed")


def close_due() -> int:
    """Close what is due and can be traded now; the rest waits for its market."""
    closed = 0
    for signal in Signal.objects.due_to_close(timezone.now()):
        try:
            closed += _close_at_market(signal)
        except (IntegrityError, DataError, ArithmeticError):
            logger.exception("Signal %s cannot be closed; the others are", signal.pk)
    return closed


def _close_at_market(signal: Signal) -> bool:
    facts = catalogue.find(signal.instrument.symbol)
    quote = market.quote(signal.instrument.symbol)
    if facts is None or quote is None or market.state(facts) != "open":
        return False
    reason = Signal.CloseReason.CANCELLED if signal.cancel_reason else Signal.CloseReason.EXPIRED
    quoted = Quoted(price(quote.bid), price(quote.ask), quote.time_ms, market.epoch(), quote.seq)
    return close(Closing.at_current(signal, reason, quoted, market.now_ms()))


watcher = Watcher()
