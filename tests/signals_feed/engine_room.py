"""An engine with its watcher, as in the process that serves, driven tick by tick."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from accounts.events import EventFeed
from accounts.tasks import end
from accounts.threads import in_thread
from market import services as market
from market.engine.bus import LocalBus
from market.engine.engine import Engine
from market.engine.runner import Runner
from market.prices.records import AnyRecord
from market.prices.ticks import Tick
from signals_feed.watching.watch import Watch
from tests.market.running import no_feed

T = TypeVar("T")


class TailBus(LocalBus):
    """Hands over what a predecessor had published and not written."""

    def __init__(self, tail: list[AnyRecord]) -> None:
        super().__init__(lambda records: None)
        self._tail = tail

    async def open(self, owner: object, place: object) -> list[AnyRecord]:
        return self._tail


class EngineRoom:
    """Nothing is written unless a test says so, and `settle` waits for all that follows from it."""

    def __init__(self, tail: Iterable[AnyRecord] = ()) -> None:
        self.engine = Engine(market.prices)
        self.events = EventFeed()
        self.watch = Watch(self.events)
        self.records: list[AnyRecord] = []
        self.runner = Runner(self.engine, no_feed, TailBus(list(tail)), [self.watch])

    async def enter(self) -> EngineRoom:
        await self.events.start()
        assert await self.runner.try_lease()
        await self.runner.start()
        await end(*self.runner._tasks)
        await self.settle()
        return self

    async def leave(self) -> None:
        await self.runner.stop()
        await self.events.stop()

    def tick(self, bid: float, ask: float, at_ms: int, symbol: str = "EURUSD") -> None:
        assert self.engine.accept(Tick(symbol, bid, ask, at_ms, 1.0), at_ms) is None
        self.records += self.engine.records
        self.runner.hand_on()

    async def settle(self) -> None:
        await self.events.read()
        await self.watch.look()
        if self.watch.closer is not None:
            await self.watch.closer.work_off()
        await self.events.read()

    async def stall(self) -> None:
        """From now on nothing is closed, as while the database is busy with other things."""
        if self.watch.closer is not None:
            await end(self.watch.closer._task)

    async def kill(self) -> None:
        """As kill -9 does: what is not in the database is gone, and the lease waits for nobody."""
        closer = self.watch.closer
        await end(*self.watch._tasks, *self.runner._tasks, None if closer is None else closer._task)
        await self.events.stop()
        await in_thread(self.runner.lease.leave)
        market.prices.clear()


def run(act: Callable[[EngineRoom], Awaitable[T]], tail: Iterable[AnyRecord] = ()) -> T:
    """In a room of its own, which ends in order."""

    async def within() -> T:
        room = await EngineRoom(tail).enter()
        try:
            return await act(room)
        finally:
            await room.leave()

    return asyncio.run(within())
