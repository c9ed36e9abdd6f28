"""A venue's messages out of a recording instead of a socket, beside a clock that the test holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from market.engine.feeds.feed import FeedReceiver
from market.engine.venues.oanda import OandaReader
from market.engine.venues.venue_feed import Refuse, VenueFeed, VenueLine, WebSocketFeed
from market.engine.venues.venue_history import MinutesRequest, TradesRequest, VenueTrade
from market.prices.candles import PriceBar
from tests.patience import PATIENCE_S


class Ended(Exception):
    """The recording has no more."""


class PlayedFeed(VenueFeed):
    """A mixin in front of a venue's feed, which has no history unless a test says so."""

    next_message: Callable[[], Awaitable[bytes]]
    """The next one, when the clock has reached it, or Ended."""

    @asynccontextmanager
    async def open(self, refuse: Refuse) -> AsyncIterator[VenueLine]:
        if isinstance(self, WebSocketFeed):
            reader: Any = self.reader(self.symbols, refuse, lambda text: None)
        else:
            reader = OandaReader(self.symbols, refuse)
        yield VenueLine(self._played, reader.read, reader.base)

    def client(self) -> Any:
        return None

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        return []

    async def trades(self, wanted: TradesRequest) -> list[VenueTrade]:
        return []

    async def play(self, receiver: FeedReceiver) -> None:
        self._is_over = asyncio.Event()
        running = asyncio.create_task(self.run(receiver))
        async with asyncio.timeout(PATIENCE_S):
            await self._is_over.wait()
        running.cancel()
        await asyncio.wait([running])

    async def _played(self) -> bytes:
        # What fills the past runs meanwhile.
        await asyncio.sleep(0)
        try:
            return await self.next_message()
        except Ended:
            self._is_over.set()
            await asyncio.Event().wait()
            raise
