"""Writes down each minute that this process served, with an engine behind it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError

from core.background import cancel_and_wait
from core.clock import now_ms
from core.contract.errors import Overloaded
from core.threads import in_thread
from market.prices.candles import MINUTE_MS, interval_start
from market.runtime import is_heard
from market.streams.market_streams import prices

from .models import Minute

logger = logging.getLogger(__name__)

KEPT = timedelta(days=31)
# A little into the next minute, so that the last one is whole.
LATE_MS = 1_500


class MinuteRecorder:
    def __init__(self) -> None:
        self._process = secrets.token_hex(8)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._record(), name="minutes served")

    async def stop(self) -> None:
        await cancel_and_wait(self._task)

    async def _record(self) -> None:
        while True:
            at_ms = now_ms()
            await asyncio.sleep((interval_start(at_ms, MINUTE_MS) + MINUTE_MS + LATE_MS - at_ms) / 1000)
            try:
                await self.note()
            except (DatabaseError, Overloaded) as error:
                logger.warning("A minute served was not written down: %s", error)
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                logger.exception("A minute served could not be written down")

    async def note(self) -> None:
        await in_thread(self.write, now_ms(), is_heard=is_heard())

    def write(self, at_ms: int, *, is_heard: bool) -> None:
        """The last full minute. Without an engine, prices stand still: nobody is served by that."""
        at = datetime.fromtimestamp((interval_start(at_ms, MINUTE_MS) - MINUTE_MS) / 1000, UTC)
        if is_heard:
            took = prices.latency.quantiles(at_ms)
            quantiles = {f"p{share * 100:.0f}_ms": took_ms for share, took_ms in took.items()}
            minute = Minute(at=at, process=self._process, **quantiles)
            Minute.objects.bulk_create([minute], ignore_conflicts=True)
        if at.minute == 0:
            Minute.objects.prune(at - KEPT)


recorder = MinuteRecorder()
