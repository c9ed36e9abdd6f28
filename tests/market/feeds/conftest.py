from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.market.feeds.venues.fakes.binance import FakeBinance
from tests.market.feeds.venues.fakes.kraken import FakeKraken
from tests.market.feeds.venues.fakes.oanda import FakeOanda
from tests.market.feeds.venues.fakes.venue import FakeVenue

VENUES: list[type[FakeVenue]] = [
    FakeKraken,
    FakeBinance,
    FakeOanda,
]


@pytest.fixture(params=VENUES, ids=lambda make: make.feed_class.venue)
async def venue(request: pytest.FixtureRequest) -> AsyncIterator[FakeVenue]:
    async with request.param() as fake:
        yield fake


@pytest.fixture(params=[make for make in VENUES if make.has_trades], ids=lambda make: make.feed_class.venue)
async def trading_venue(request: pytest.FixtureRequest) -> AsyncIterator[FakeVenue]:
    async with request.param() as fake:
        yield fake


@pytest.fixture(params=[make for make in VENUES if make.has_history], ids=lambda make: make.feed_class.venue)
async def venue_with_history(request: pytest.FixtureRequest) -> AsyncIterator[FakeVenue]:
    async with request.param() as fake:
        yield fake
