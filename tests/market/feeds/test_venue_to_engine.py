"""From a venue's socket through the feed that the settings make, and a real engine, into the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from market import runtime as market
from market.engine.engine import Engine
from market.engine.feeds import supervisor
from market.engine.runner import Runner
from market.engine.status import InstrumentStatus
from market.engine.venues.venue_feed import VenueFeed
from market.models import Candle
from market.prices.quotes import Prices
from tests.factories import NOON, make_instrument
from tests.market.feeds.venues.fakes.binance import FakeBinance
from tests.market.feeds.venues.fakes.kraken import FakeKraken
from tests.market.feeds.venues.fakes.venue import NOON_MS, FakeVenue, make_pace
from tests.market.running import make_runner
from tests.patience import until

pytestmark = [
    pytest.mark.served,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("transactional_db"),
]


def use(settings: Settings, venue: FakeVenue) -> None:
    for name, value in venue.settings.items():
        setattr(settings, name, value)


class Connected:
    """A runner whose feed is the venue's; between two tries it waits until it is let go."""

    def __init__(self, venue: FakeVenue) -> None:
        self.venue = venue
        self.engine = Engine(Prices("bid"))
        self.may_retry = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Runner]:
        runner = make_runner(self.engine, self.make_feed)
        assert await runner.writer.try_lease()
        await runner.start()
        try:
            yield runner
        finally:
            await runner.stop()

    def make_feed(self, name: str, instruments: list[InstrumentFacts]) -> VenueFeed:
        feed = supervisor.make_feed(name, instruments)
        assert isinstance(feed, VenueFeed)
        feed.pace = make_pace(sleep=self._wait)
        return feed

    async def quote(self, bid: float, time_ms: int) -> None:
        """Sent by the venue, and a quote of the engine."""
        quote = self.venue.quote(self.name, bid, bid + 0.0002, time_ms, time_ms)
        await self.venue.send(self.venue.clock(), quote)
        await until(lambda: self.bid == bid)

    @property
    def name(self) -> str:
        return self.venue.symbols["EURUSD"]

    @property
    def bid(self) -> float | None:
        quote = self.engine.prices.quotes.get("EURUSD")
        return None if quote is None else quote.bid

    @property
    def is_lost(self) -> bool:
        return self.engine.feed_state(self.venue.feed_name).lost_ms is not None

    @property
    def has_closed_minute(self) -> bool:
        facts = self.engine.instruments["EURUSD"].facts
        return self.engine.prices.history(facts).last_closed_ms("1m") == NOON_MS

    async def _wait(self, _: float) -> None:
        await self.may_retry.wait()


@pytest.fixture
def instrument(request: pytest.FixtureRequest) -> None:
    """Priced by the venue of the test."""
    name = request.node.callspec.id.lower()
    make_instrument("EURUSD", source=name)


def minutes_kept() -> list[tuple[int, float, str]]:
    rows = Candle.objects.filter(timeframe="1m").order_by("opened_at")
    return [((row.opened_at - NOON) // timedelta(minutes=1), float(row.close), row.basis) for row in rows]


async def lose_for_four_minutes(
    connected: Connected, clock: time_machine.Traveller, *, tells_history: bool = True
) -> None:
    """The first minute is known in part, the next three were missed, and the fifth runs."""
    await connected.venue.visited(names=1)
    clock.shift(10)
    await connected.quote(1.08, NOON_MS + 5_000)
    await connected.venue.close()
    await until(lambda: connected.is_lost)
    connected.venue.history_asked.clear()
    connected.venue.bars[connected.name] = [(NOON_MS + n * MINUTE_MS, 1.1 + n / 100) for n in range(4)]
    clock.shift(240)
    await until(lambda: connected.has_closed_minute)
    if not tells_history:
        connected.venue.may_tell_history.clear()
    connected.may_retry.set()
    await connected.venue.visited(2, names=1)


@pytest.mark.usefixtures("instrument")
async def test_missed_minutes_come_from_the_venues_history_and_ticks_go_on(
    venue_with_history: FakeVenue, settings: Settings, clock: time_machine.Traveller
) -> None:
    venue = venue_with_history
    use(settings, venue)
    connected = Connected(venue)

    async with connected.running():
        await lose_for_four_minutes(connected, clock)
        await connected.quote(1.09, NOON_MS + 245_000)

    own, theirs = "bid", venue.feed_class.basis
    # The minute in which the venue was lost is closed: it stays what its ticks made of it.
    assert await in_thread(minutes_kept) == [
        (0, 1.08, own),
        (1, 1.11, theirs),
        (2, 1.12, theirs),
        (3, 1.13, theirs),
    ]
    assert len(venue.history_asked) == 1


@pytest.mark.usefixtures("instrument")
async def test_what_comes_while_history_is_awaited_is_in_the_minute_in_which_it_came(
    venue_with_history: FakeVenue, settings: Settings, clock: time_machine.Traveller
) -> None:
    venue = venue_with_history
    use(settings, venue)
    connected = Connected(venue)

    async with connected.running():
        await lose_for_four_minutes(connected, clock, tells_history=False)
        await venue.asked_for_history()
        feed_state = connected.engine.feed_state(venue.feed_name)
        clock.shift(40)
        await venue.send(venue.quote(connected.name, 1.09, 1.0902, NOON_MS + 290_000, 1), b"{")
        await until(lambda: feed_state.refused["malformed"] > 0)
        clock.shift(15)
        venue.may_tell_history.set()
        await connected.quote(1.1, NOON_MS + 305_000)

    own, theirs = "bid", venue.feed_class.basis
    missed = [(1, 1.11, theirs), (2, 1.12, theirs), (3, 1.13, theirs)]
    assert await in_thread(minutes_kept) == [(0, 1.08, own), *missed, (4, 1.09, own)]
    assert feed_state.refused == {"malformed": 1}


@pytest.mark.usefixtures("instrument")
async def test_time_never_goes_back_on_the_board(
    venue: FakeVenue, settings: Settings, clock: time_machine.Traveller
) -> None:
    use(settings, venue)
    connected = Connected(venue)
    clock.shift(10)

    async with connected.running():
        await venue.visited(names=1)
        await connected.quote(1.08, NOON_MS + 10_000)
        before_ms = connected.engine.prices.quotes["EURUSD"].time_ms
        late = venue.quote(connected.name, 1.07, 1.0702, NOON_MS + 9_000, NOON_MS + 10_001)
        if not venue.gives_quote_times:
            # A machine's clock that was set back dates nothing back.
            clock.shift(-1)
        await venue.send(late)
        feed_state = connected.engine.feed_state(venue.feed_name)
        await until(lambda: bool(feed_state.refused) or connected.bid == 1.07)
        quote = connected.engine.prices.quotes["EURUSD"]

    assert quote.time_ms == before_ms
    assert feed_state.refused == ({"older_than_last": 1} if venue.gives_quote_times else {})


class Two:
    """Kraken, and Binance that stands in for it, followed by the service itself."""

    def __init__(self, kraken: FakeKraken, binance: FakeBinance) -> None:
        self.kraken = kraken
        self.binance = binance

    async def quote(self, venue: FakeVenue, time_ms: int) -> None:
        feed_state = market.engine.feed_state(venue.feed_name)
        known = feed_state.ticks + feed_state.refused.total()
        await venue.send(venue.clock(), venue.quote(venue.symbols["EURUSD"], 1.08, 1.0802, time_ms, time_ms))
        await until(lambda: feed_state.ticks + feed_state.refused.total() > known)

    async def status_of(self, feed: str) -> InstrumentStatus:
        """The status once it says that this feed prices the instrument."""
        runner = market.market.runner
        assert runner is not None

        def says_so() -> bool:
            runner.writer.flush_soon()
            return any(instrument.feed == feed for instrument in market.status().instruments)

        await until(says_so)
        (instrument,) = market.status().instruments
        return instrument


@pytest.fixture
async def two(settings: Settings, own_market: None) -> AsyncIterator[Two]:
    settings.REDIS_URL = ""
    await in_thread(lambda: make_instrument("EURUSD", source="kraken", fallback="binance"))
    async with AsyncExitStack() as stack:
        made: list[Any] = [await stack.enter_async_context(make()) for make in (FakeKraken, FakeBinance)]
        for venue in made:
            use(settings, venue)
        await market.start()
        stack.push_async_callback(market.stop)
        for venue in made:
            await venue.visited(names=1)
        yield Two(*made)


async def test_stalled_source_hands_over_to_its_fallback_and_gets_it_back(
    clock: time_machine.Traveller, two: Two
) -> None:
    await two.quote(two.kraken, NOON_MS)
    first = await two.status_of("kraken")
    clock.shift(61)
    await two.quote(two.binance, NOON_MS + 61_000)
    over = await two.status_of("binance")
    for after_ms in (66_000, 71_000, 76_000):
        clock.shift(5)
        await two.quote(two.kraken, NOON_MS + after_ms)
    back = await two.status_of("kraken")

    assert [(status.switches, status.switched_ms) for status in (first, over, back)] == [
        (0, None),
        (1, NOON_MS + 61_000),
        (2, NOON_MS + 76_000),
    ]
    assert back.feeds == ("kraken", "binance")
