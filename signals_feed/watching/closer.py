"""Closes what was hit, beside the ticks: at most one entry for each active signal waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from uuid import UUID

from django.db import DataError, IntegrityError

from accounts.event_handling import PASSING
from accounts.tasks import end
from accounts.threads import in_thread
from accounts.troubles import Trouble
from market.engine.lease import Deposed
from signals_feed.closures import Closing, close_all

logger = logging.getLogger(__name__)
closing_waits = Trouble(logger, "Signals that were hit wait to be closed")

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
        with suppress(TimeoutError, Deposed, *PASSING):
            async with asyncio.timeout(LAST_S):
                await self.work_off()
        if self.pending:
            logger.warning("%d signals are closed when an engine starts again", len(self.pending))
        await end(self._task)

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
            except Deposed:
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
            await in_thread(close_all, some, self._hold)
        except IMPOSSIBLE:
            for closing in some:
                await self._close_one(closing)
        for closing in some:
            # Closed by this, or by somebody who was first.
            self.pending.pop(closing.signal, None)

    async def _close_one(self, closing: Closing) -> None:
        try:
            await in_thread(close_all, [closing], self._hold)
        except IMPOSSIBLE:
            logger.exception("Signal %s cannot be closed; the others are", closing.signal)
            self.stuck[closing.signal] = closing

    async def _try_again(self) -> None:
        await asyncio.sleep(AGAIN_S)
        self._wake.set()
