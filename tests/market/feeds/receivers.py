"""An engine that writes down what a feed tells it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from market.engine.feeds.feed import MarketFeed, Unheard
from market.prices.candles import PriceBar
from market.prices.records import Tick
from tests.patience import PATIENCE_S


class RecordingReceiver:
    def __init__(self, missing: dict[str, int] | None = None) -> None:
        self.takes = self.source_ms = self.ahead_ms = 0
        self.ticks: list[Tick] = []
        self.losses: list[str] = []
        self.refused: Counter[str] = Counter()
        self.complaints: list[str] = []
        self.unserved: list[str] = []
        self.lacking: dict[str, Unheard] = {}
        self.healed: dict[str, list[Tick]] = {}
        self.backfilled: dict[str, list[PriceBar]] = {}
        self.order: list[str] = []
        self._missing = missing or {}
        self._changed = asyncio.Event()

    def take(self, ticks: list[Tick]) -> None:
        self.takes += 1
        self.ticks += ticks
        self._note("ticks" if ticks else "alive")

    def note_time(self, source_ms: int, ahead_ms: int) -> None:
        self.source_ms, self.ahead_ms = max(self.source_ms, source_ms), ahead_ms

    def lost(self, why: str) -> None:
        self.losses.append(why)
        self._note("lost")

    def refuse(self, reason: str, what: str = "", symbols: Sequence[str] = ()) -> None:
        self.refused[reason] += 1
        self.unserved += symbols
        self.complaints += [what] * bool(what)
        self._note(f"refused {reason}")

    def missing(self) -> dict[str, int]:
        self._note("missing")
        return self._missing

    def unheard(self) -> dict[str, Unheard]:
        return self.lacking

    def begun(self) -> None:
        """Nothing is broken here."""

    def heal(self, symbol: str, trades: list[Tick], since_ms: int) -> None:
        self.healed[symbol] = trades
        self._note("healed")

    def backfill(self, symbol: str, minutes: list[PriceBar], basis: str) -> None:
        self.backfilled[symbol] = minutes
        self._note(f"backfill {basis}")

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what the feed tells; a feed that never tells it is a failure."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def until_ticks(self, count: int) -> list[Tick]:
        await self.until(lambda: len(self.ticks) >= count)
        return self.ticks

    async def until_lost(self, times: int = 1) -> list[str]:
        await self.until(lambda: len(self.losses) >= times)
        return self.losses

    async def until_takes(self, count: int) -> None:
        await self.until(lambda: self.takes >= count)

    def _note(self, what: str) -> None:
        self.order.append(what)
        self._changed.set()


class Waits:
    """Takes the place of sleeping between two tries: writes down for how long, and ends the trying."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.Event().wait()


@asynccontextmanager
async def running(feed: MarketFeed, receiver: RecordingReceiver) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(feed.run(receiver))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE_S)
        if not task.cancelled():
            task.result()
