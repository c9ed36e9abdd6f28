"""Feeds that break or end, and tasks that go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from market.engine.engine import Engine
from market.prices.market import Prices
from market.prices.ticks import Tick
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db", "clock")]


class ShortFeed:
    """Gives one tick a connection, then fails or ends."""

    def __init__(self, fault: Exception | None) -> None:
        self.fault = fault
        self.connections = 0
        self.is_back = asyncio.Event()

    async def batches(self) -> AsyncIterator[list[Tick]]:
        self.connections += 1
        yield [Tick("EURUSD", 1.08, 1.0802, NOON_MS - 100 + self.connections, 1.0)]
        if self.connections > 1:
            self.is_back.set()
            await asyncio.Event().wait()
        if self.fault:
            raise self.fault


@pytest.mark.parametrize("fault", [ConnectionResetError("gone"), None], ids=["broke", "ended"])
def test_feed_that_broke_or_ended_starts_again(fault: Exception | None) -> None:
    make_instrument("EURUSD")
    engine = Engine(Prices("bid"))

    async def listen() -> int:
        feed = ShortFeed(fault)
        await engine.start(feed, "bid")
        await asyncio.wait_for(feed.is_back.wait(), 10)
        quote = engine.prices.board.get("EURUSD")
        await engine.stop()
        assert quote is not None
        return quote.time_ms

    assert asyncio.run(listen()) == NOON_MS - 98
