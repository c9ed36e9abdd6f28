"""What runs beside the requests, started and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

from django.conf import settings
from django.db import DatabaseError

from accounts.keys.lookup import key_cache
from accounts.limits.throttle import throttle
from accounts.login.mails import outgoing
from accounts.open_streams.registry import open_streams
from accounts.pruning import pruner
from accounts.usage.buffer import usage_buffer
from analysis.analyses import analyses
from core import clock, process
from core.background import cancel_and_wait
from core.contract.errors import Overloaded
from core.events.feed import feed
from core.fault_log import LastingFault
from demo.publishers import demo_publishers
from instruments.catalogue import catalogue
from market import runtime as market
from market.overview import GONE_MS
from market.push.keys import ingest_key_cache
from market.streams import market_streams as streams
from market.streams.sessions.authenticated import trust_watch
from news.background import news_tasks
from serving.prometheus import metrics_port
from serving.readiness.findings import OK
from serving.readiness.monitor import monitor
from signals_feed.stream.signal_stream import signals
from status.models import ProcessReport
from status.recorder import recorder

from .session import start_uptime, stop_uptime

logger = logging.getLogger(__name__)
use_waits = LastingFault(logger, "What was used waits for the database")

RECORD_USE_S = 15
RINGS = (key_cache, ingest_key_cache)


class Service:
    """One per process: opened by the server's lifespan, or at the first request where there is none."""

    def __init__(self) -> None:
        self.is_ready = False
        self._opening: asyncio.Lock | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await throttle.open()
        # Events first: what is loaded after this can be dropped by them, so nothing is missed.
        await feed.start()
        for ring in RINGS:
            await ring.start()
        await catalogue.load()
        await open_streams.start()
        await trust_watch.start()
        await start_uptime()
        await market.start()
        await signals.start()
        await demo_publishers.start()
        await recorder.start()
        await analyses.start()
        await news_tasks.start()
        await metrics_port.start()
        await pruner.start()
        outgoing.start()
        self._task = asyncio.create_task(self._record_use(), name="last use of keys")
        process.freeze_startup_objects()
        monitor.start(market_states, ProcessReport.objects)
        self.is_ready = True

    async def stop(self) -> None:
        self.is_ready = False
        await monitor.stop()
        await metrics_port.stop()
        await cancel_and_wait(self._task)
        await pruner.stop()
        await outgoing.stop()
        await news_tasks.stop()
        await analyses.stop()
        await recorder.stop()
        await demo_publishers.stop()
        await signals.stop()
        await market.stop()
        streams.stop()
        await stop_uptime()
        await trust_watch.stop()
        await open_streams.stop()
        for ring in RINGS:
            await ring.stop()
        await feed.stop()
        with contextlib.suppress(DatabaseError, Overloaded):
            await record_use(all_of_it=True)
        await throttle.close()

    async def ensure(self) -> None:
        """For servers without lifespan (daphne): the first to come opens, the others wait."""
        if self.is_ready:
            return
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if not self.is_ready:
                await self.start()

    async def _record_use(self) -> None:
        while True:
            await asyncio.sleep(RECORD_USE_S)
            try:
                await record_use()
                use_waits.over()
            except (DatabaseError, Overloaded) as error:
                use_waits.tell(error)


async def record_use(*, all_of_it: bool = False) -> None:
    for ring in RINGS:
        await ring.record_use(all_of_it=all_of_it)
    await usage_buffer.record()


def market_states() -> Iterator[tuple[str, str]]:
    """What readiness is told of the market in this process."""
    age_ms = clock.now_ms() - market.status().at_ms
    yield "engine", OK if age_ms <= GONE_MS else "silent"
    if not settings.REDIS_URL:
        yield "journal", "incomplete" if market.status().has_hole else OK


service = Service()
