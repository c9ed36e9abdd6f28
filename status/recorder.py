"""Writes down each minute that this process served, with an engine behind it."""

import asyncio
import logging
import secrets
from datetime import timedelta

from core.background import BackgroundLoop
from core.clock import now_ms
from core.database import UNANSWERED
from core.fault_log import EachFault
from core.threads import in_thread
from core.times import MINUTE_MS, moment
from market.prices import interval_start
from market.runtime import is_heard
from market.streams.market_streams import prices

from .models import Minute

logger = logging.getLogger(__name__)

MINUTES_KEPT = timedelta(days=31)
# A little into the next minute, so that the last one is complete.
LATE_MS = 1_500


class MinuteRecorder:
    def __init__(self) -> None:
        self._process = secrets.token_hex(8)
        self._loop = BackgroundLoop(
            "minutes served",
            self.note,
            fault=EachFault(logger, "A minute served was not written down"),
            broke="A minute served could not be written down",
            passing=UNANSWERED,
            before=until_minute_is_over,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def note(self) -> None:
        await in_thread(self.write, now_ms(), is_heard=is_heard())

    def write(self, at_ms: int, *, is_heard: bool) -> None:
        """Writes down the last full minute. Without an engine, prices stand still and nobody is served."""
        at = moment(interval_start(at_ms, MINUTE_MS) - MINUTE_MS)
        if is_heard:
            took = prices.hub.latency.quantiles(at_ms)
            quantiles = {f"p{share * 100:.0f}_ms": took_ms for share, took_ms in took.items()}
            minute = Minute(at=at, process=self._process, **quantiles)
            Minute.objects.bulk_create([minute], ignore_conflicts=True)
        if at.minute == 0:
            Minute.objects.prune(at - MINUTES_KEPT)


async def until_minute_is_over() -> None:
    at_ms = now_ms()
    await asyncio.sleep((interval_start(at_ms, MINUTE_MS) + MINUTE_MS + LATE_MS - at_ms) / 1000)


recorder = MinuteRecorder()
