"""What runs beside the requests, started and stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from django.db import DatabaseError

from accounts import memory
from accounts.authentication import key_ring
from accounts.events import feed
from accounts.exceptions import Overloaded
from accounts.mails import outgoing
from accounts.pruning import pruner
from accounts.streams import open_streams
from accounts.tasks import end
from accounts.throttling import throttle
from accounts.troubles import Trouble
from accounts.usage_tally import usage
from instruments.catalogue import catalogue
from market import services as market
from market.ingest.ring import ingest_ring
from market.streams import service as streams
from market.streams.trust import trust_watch
from news import models_available
from news.analysis.service import analyses
from news.service import newsroom
from signals_feed.stream import signals
from status.recorder import recorder

from . import uptime
from .demo.house import house
from .metrics import metrics_port
from .readiness.monitor import monitor

logger = logging.getLogger(__name__)
use_waits = Trouble(logger, "What was used waits for the database")

RECORD_USE_S = 15
RINGS = (key_ring, ingest_ring)


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
        await uptime.start()
        await market.start()
        await signals.start()
        await house.start()
        await recorder.start()
        await analyses.start()
        await newsroom.start()
        await models_available.rounds.start()
        await metrics_port.start()
        await pruner.start()
        outgoing.start()
        self._task = asyncio.create_task(self._record_use(), name="last use of keys")
        memory.settle()
        monitor.start()
        self.is_ready = True

    async def stop(self) -> None:
        self.is_ready = False
        await monitor.stop()
        await metrics_port.stop()
        await end(self._task)
        await pruner.stop()
        await outgoing.stop()
        await models_available.rounds.stop()
        await newsroom.stop()
        await analyses.stop()
        await recorder.stop()
        await house.stop()
        await signals.stop()
        await market.stop()
        streams.stop()
        await uptime.stop()
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
    await usage.record()


service = Service()
