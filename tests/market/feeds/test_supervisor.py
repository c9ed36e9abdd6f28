"""Feeds that break or end, and tasks that go on."""

from __future__ import annotations

import asyncio

import pytest

from market.engine.engine import Engine
from market.engine.feeds.feed import FeedReceiver
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db", "clock")]


class ShortFeed:
    """Gives one tick each time it runs, then fails."""

    def __init__(self) -> None:
        self.runs = 0
        self.is_back = asyncio.Event()

    async def run(self, receiver: FeedReceiver) -> None:
        self.runs += 1
        receiver.take([Tick("EURUSD", 1.08, 1.0802, NOON_MS - 100 + self.runs)])
        if self.runs > 1:
            self.is_back.set()
            await asyncio.Event().wait()
        raise ConnectionResetError("gone")


def test_feed_that_broke_starts_again() -> None:
    make_instrument("EURUSD", source="kraken")
    engine, feed = Engine(Prices("bid")), ShortFeed()

    async def listen() -> int:
        runner = make_runner(engine, lambda name, instruments: feed)
        await runner.start()
        await asyncio.wait_for(feed.is_back.wait(), PATIENCE_S)
        quote = engine.prices.quotes.get("EURUSD")
        await runner.stop()
        assert quote is not None
        return quote.time_ms

    assert asyncio.run(listen()) == NOON_MS - 98
