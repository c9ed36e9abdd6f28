"""A stand-in has the candles of the database before its turn comes, whatever else is written meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import DatabaseError
from redis import Redis

from core.redis.connections import key_of
from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import PUSH
from market.engine.bus.journal import STREAM
from market.engine.bus.redis_bus import RedisBus
from market.engine.engine import Engine
from market.engine.listeners import EngineStart
from market.engine.runner import Runner, StandIn
from market.models import Candle, EngineState
from market.prices.candles import TIMEFRAMES
from market.prices.quotes import Prices
from market.prices.records import JournalPosition, Tick
from market.store.series import change_kind, load
from tests.databases.queries import count_queries
from tests.factories import make_instrument
from tests.market.running import IdleListener, no_feed, stop_engine_tasks
from tests.market.store.test_engine_store import broken_database
from tests.market.ticking import NOON_MS

from .test_reader import bars

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.served]
SYMBOLS = "EURUSD", "GBPUSD"

# Of more than one candle of five minutes.
MINUTES = 12
SECONDS = range(0, 60, 7)
TAIL = 2 * len(SECONDS)
"""Entries that the database lacks."""
Change = Callable[[StandIn, Redis], None]


def nothing(stand_in: StandIn, client: Redis) -> None:
    pass


def an_import(stand_in: StandIn, client: Redis | None) -> None:
    Candle.objects.filter(timeframe="1m").update(volume=777)
    for symbol in SYMBOLS:
        stand_in.forget(symbol)


def an_untold_change_of_kind(stand_in: StandIn, client: Redis) -> None:
    """Its engine was killed between the commit and the bus."""
    change_kind(catalogue.get("EURUSD"), NOON_MS + MINUTES * MINUTE_MS, simulated=True)


def a_bus_that_lacks_an_entry(stand_in: StandIn, client: Redis) -> None:
    """Of those that it has not read and the database has."""
    entries: Any = client.xrange(key_of(STREAM))
    client.xdel(key_of(STREAM), entries[-TAIL - 2][0])


def a_new_instrument(stand_in: StandIn, client: Redis) -> None:
    make_instrument("USDJPY")


def a_database_that_fell_back(stand_in: StandIn, client: Redis) -> None:
    """To a replica that was late: it has less than the stand-in."""
    EngineState.objects.update(position=1)


class Leader:
    """An engine whose time is the test's."""

    def __init__(self, url: str) -> None:
        self.engine = Engine(Prices("bid"), PUSH)
        self.runner = Runner(self.engine, no_feed, RedisBus(url))

    async def begin(self) -> None:
        await catalogue.load()
        await self.runner.writer.wait_for_lease()
        await self.runner.start()
        await stop_engine_tasks()

    async def work(self, first: int, last: int) -> None:
        for minute in range(first, last):
            for second in SECONDS:
                at_ms = NOON_MS + minute * MINUTE_MS + second * 1000
                bid = 1.1 + (minute * 31 + second * 17) % 97 / 10_000
                ticks = [Tick(symbol, bid, bid + 0.0002, at_ms, 1.0) for symbol in SYMBOLS]
                assert self.engine.take(PUSH, ticks, at_ms) == [None, None]
                self.engine.keep_time(at_ms)
                self.runner.publish()
                self.runner.bus.seal()
        await self.runner.bus.settle()


@pytest.mark.parametrize(
    "change",
    [
        nothing,
        an_import,
        an_untold_change_of_kind,
        a_bus_that_lacks_an_entry,
        a_database_that_fell_back,
        a_new_instrument,
    ],
)
def test_stand_in_has_what_the_database_holds_and_reads_no_candle_twice(
    url: str, client: Redis, change: Change
) -> None:
    for symbol in SYMBOLS:
        make_instrument(symbol)

    async def run() -> None:
        leader, prices, cold, reads = Leader(url), Prices("bid"), Prices("bid"), list[bool]()
        await leader.begin()
        bus = RedisBus(url)
        stand_in = StandIn(prices, PUSH, bus)
        for minute in range(0, MINUTES, 3):
            epoch, number = leader.runner.bus.journal_position
            with count_queries() as asked:
                # Told of what is not on the bus yet.
                until = JournalPosition(epoch, number + 3 * len(SECONDS))
                following = asyncio.create_task(stand_in.follow(until))
                await leader.work(minute, minute + 3)
                await following
            reads.append(any("market_candle" in each for each in asked))
            await leader.runner.writer.flush()
        await leader.work(MINUTES, MINUTES + 2)
        await leader.runner.writer.flush()
        await leader.work(MINUTES + 2, MINUTES + 4)
        await in_thread(change, stand_in, client)
        await catalogue.load()
        with count_queries() as asked:
            loaded = await stand_in.load()
        reads.append(any("market_candle" in each for each in asked))
        assert reads == [True, False, False, False, change is not nothing]
        assert loaded == await in_thread(load, cold, PUSH)
        assert prices.quotes == cold.quotes
        for symbol in SYMBOLS:
            for timeframe in TIMEFRAMES:
                assert bars(prices, timeframe, symbol) == bars(cold, timeframe, symbol), (symbol, timeframe)
                formed, known = (each.histories[symbol].builder.forming(timeframe) for each in (prices, cold))
                assert formed == known, (symbol, timeframe)
        await bus.close()
        await leader.runner.stop()

    asyncio.run(run())


def test_import_stays_stale_while_the_database_does_not_answer(url: str, client: Redis) -> None:
    for symbol in SYMBOLS:
        make_instrument(symbol)

    async def run() -> None:
        leader, prices, cold = Leader(url), Prices("bid"), Prices("bid")
        await leader.begin()
        bus = RedisBus(url)
        stand_in = StandIn(prices, PUSH, bus)
        await leader.work(0, 3)
        await leader.runner.writer.flush()
        await stand_in.follow(leader.runner.bus.journal_position)
        await in_thread(an_import, stand_in, client)
        with ExitStack() as broken:
            await in_thread(broken.enter_context, broken_database("market_lastquote"))
            with pytest.raises(DatabaseError):
                await stand_in.load()
            await in_thread(broken.close)
        await stand_in.load()
        await in_thread(load, cold, PUSH)
        assert bars(prices, "1m") == bars(cold, "1m")
        await bus.close()
        await leader.runner.stop()

    asyncio.run(run())


class Importing(IdleListener):
    """Something is imported when the candles were read and the engine does not run yet."""

    runner: Runner

    async def begin(self, start: EngineStart) -> None:
        await in_thread(an_import, self.runner.stand_in, None)


def test_import_while_an_engine_starts_is_read_before_it_runs(url: str, client: Redis) -> None:
    for symbol in SYMBOLS:
        make_instrument(symbol)

    async def run() -> None:
        leader, engine, importing, cold = Leader(url), Engine(Prices("bid"), PUSH), Importing(), Prices("bid")
        await leader.begin()
        await leader.work(0, 3)
        await leader.runner.stop()
        importing.runner = Runner(engine, no_feed, RedisBus(url), [importing])
        await importing.runner.writer.wait_for_lease()
        await importing.runner.start()
        await in_thread(load, cold, PUSH)
        assert bars(engine.prices, "1m") == bars(cold, "1m")
        await importing.runner.stop()

    asyncio.run(run())


def test_stand_in_that_is_told_of_less_than_it_has_takes_nothing_twice(url: str, client: Redis) -> None:
    """The lease was looked at before the candles were read."""
    for symbol in SYMBOLS:
        make_instrument(symbol)

    async def run() -> None:
        leader, prices = Leader(url), Prices("bid")
        await leader.begin()
        bus = RedisBus(url)
        stand_in, before = StandIn(prices, PUSH, bus), leader.runner.bus.journal_position
        for minute in (0, 1):
            await leader.work(minute, minute + 1)
            await leader.runner.writer.flush()
            for written in (leader.runner.bus.journal_position, before):
                await stand_in.follow(written)
        assert bars(prices, "5m") == bars(leader.engine.prices, "5m")
        await bus.close()
        await leader.runner.stop()

    asyncio.run(run())
