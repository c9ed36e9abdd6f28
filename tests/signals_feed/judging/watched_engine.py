"""An engine with its watcher, as in the process that serves, driven tick by tick."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal
from typing import Any, TypeVar

from core import clock
from core.events.event_feed import EventFeed
from core.threads import in_thread
from instruments.catalogue import catalogue
from market import runtime as market
from market.engine.bus.local_bus import LocalBus
from market.engine.engine import NEVER_MS, Engine
from market.engine.runner import Runner
from market.engine.status import EngineStatus
from market.prices.records import AnyRecord, JournalPosition, Tick, TickAccepted
from signals_feed.exits import Tick as JudgedTick
from signals_feed.judging.watcher import SignalWatcher
from tests.core.events.following import follow
from tests.market.running import make_journal, no_feed, stop_engine_tasks

T = TypeVar("T")
TAPE: list[JudgedTick] = []
"""Every tick of the test, for the judge."""


class TailBus(LocalBus):
    """Hands over what a predecessor had published and not written."""

    def __init__(self, tail: list[AnyRecord]) -> None:
        super().__init__(lambda records: None, make_journal())
        self._tail = tail

    async def open(self, owner: object, position: object) -> list[AnyRecord]:
        return self._tail


class WatchedEngine:
    """Nothing is written unless a test says so, and `settle` waits for all that follows from it."""

    def __init__(self, tail: Iterable[AnyRecord] = (), epoch: str = "") -> None:
        self.engine = Engine(market.prices)
        self.events = EventFeed()
        self.watcher = SignalWatcher()
        follow(self.events, catalogue, self.watcher)
        self.records: list[AnyRecord] = []
        self.ahead_ms = 0
        bus = TailBus(list(tail))
        if epoch:
            bus.journal_position = JournalPosition(epoch, 0)
        self.runner = Runner(self.engine, no_feed, bus, [self.watcher], self._note_status)

    async def enter(self) -> WatchedEngine:
        await self.events.start()
        assert await self.runner.writer.try_lease()
        await self.runner.start()
        await stop_engine_tasks()
        await self.settle()
        return self

    def _note_status(self, status: EngineStatus) -> None:
        market.market.status = status

    async def leave(self) -> None:
        await self.runner.stop()
        market.market.status = EngineStatus()
        await self.events.stop()

    def tick(
        self, bid: float, ask: float, at_ms: int, symbol: str = "EURUSD", reason: str | None = None
    ) -> None:
        assert self.engine.accept(Tick(symbol, bid, ask, at_ms - self.ahead_ms, 1.0), at_ms) == reason
        self.records += self.engine.records
        TAPE.extend(
            JudgedTick(
                *(
                    Decimal(str(each.bid)),
                    Decimal(str(each.ask)),
                    each.time_ms,
                    self.runner.epoch(),
                    each.seq,
                ),
                *(each.accepted_ms, each.feed, each.settled, each.unsettled_ms),
            )
            for each in self.engine.records
            if isinstance(each, TickAccepted)
        )
        self.runner.publish()

    def run_ahead(self, ms: int) -> None:
        """Its clock is so far ahead of the source's."""
        self.ahead_ms = ms
        self.engine.feed_state("push").note_time(NEVER_MS, ms)

    def now_ms(self) -> int:
        return clock.now_ms()

    async def settle(self) -> None:
        await self.events.read()
        await self.watcher.look()
        if self.watcher.closer is not None:
            await self.watcher.closer.work_off()
        await self.events.read()

    async def stall(self) -> None:
        """From now on nothing is closed, as while the database is busy with other things."""
        if self.watcher.closer is not None:
            await self.watcher.closer.loop.stop()

    async def kill(self) -> None:
        """As kill -9 does: what is not in the database is gone, and the lease waits for nobody."""
        await self.watcher.loop.stop()
        await self.stall()
        await stop_engine_tasks()
        await self.events.stop()
        await in_thread(self.runner.writer.lease.leave)
        market.market.status = EngineStatus()
        market.prices.clear()


Act = Callable[[WatchedEngine], Awaitable[T]]


def run(act: Act[T], tail: Iterable[AnyRecord] = (), epoch: str = "", *, is_killed: bool = False) -> T:
    """Ends in order, unless it is killed."""

    async def within() -> T:
        watched = await WatchedEngine(tail, epoch).enter()
        try:
            return await act(watched)
        finally:
            await (watched.kill() if is_killed else watched.leave())

    return asyncio.run(within())


def killed(act: Act[Any], epoch: str = "") -> list[AnyRecord]:
    """Runs until it is killed; returns what it told others."""

    async def within(watched: WatchedEngine) -> list[AnyRecord]:
        await act(watched)
        return watched.records

    return run(within, epoch=epoch, is_killed=True)
