"""A web process that hears the bus: all of it once and in order, also when a numbering or a series begins,
and when no engine is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError, connection
from redis import Redis

from core.redis.connections import key_of
from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.facts import DEMO
from instruments.models import Instrument
from market.engine.bus.bus_reader import BusListener, BusReader
from market.engine.bus.journal import HEAD, STREAM, encode
from market.engine.bus.redis_bus import MAX_WAITING, RedisBus
from market.engine.engine import Engine
from market.models import Candle, EngineState
from market.prices.candles import TIMEFRAMES
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition, SeriesBegan, Tick
from tests.databases.queries import around_statements
from tests.factories import make_instrument
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS
from tests.patience import until

from .buses import (
    Following,
    JournalWriter,
    follow,
    number_of_entries,
    opened,
    publish,
    taken,
    write_position,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]

# Of more than one candle of five minutes.
MINUTES = 12


def test_reader_hears_everything_once_and_in_order_though_it_loses_its_connection(
    url: str, client: Redis
) -> None:
    async def act(bus: RedisBus, following: Following) -> None:
        for first in range(1, 300, 20):
            await publish(bus, first, first + 19)
            client.client_kill_filter(_type="normal", skipme=True)
            await asyncio.sleep(0)
        await until(lambda: len(following.heard) >= 300)

    following = follow(url, act)

    assert following.heard == list(range(1, 301))
    assert following.missed == []
    quote = following.prices.quotes.get("EURUSD")
    assert quote is not None
    assert quote.time_ms == NOON_MS + 300


def test_reader_notices_an_entry_that_it_never_saw(url: str, client: Redis) -> None:
    async def act(bus: RedisBus, following: Following) -> None:
        await publish(bus, 1, 2)
        await until(lambda: len(following.heard) == 2)
        epoch, number = bus.journal_position
        client.xadd(key_of(STREAM), {"e": epoch, "d": encode([taken(4)])}, id=f"{number + 2}-0")
        client.hset(key_of(HEAD), "n", str(number + 2))
        await asyncio.to_thread(write_position, JournalPosition(epoch, number + 1))
        await until(lambda: 4 in following.heard)

    following = follow(url, act)

    assert following.heard == [1, 2, 4]
    assert len(following.missed) == 1


def two_before(position: JournalPosition) -> JournalPosition:
    return JournalPosition(position.epoch, position.number - 2)


async def restart_numbering(bus: RedisBus, following: Following, client: Redis) -> JournalPosition:
    """Two ticks of the first numbering are heard; 4 and 5, which nobody has written, are of a second one."""
    await publish(bus, 1, 2)
    await until(lambda: len(following.heard) == 2)
    before = bus.journal_position
    # More than may wait for Redis: they are given up.
    bus.publish([taken(3)] * (MAX_WAITING + 1))
    await until(lambda: bus.journal_position.epoch != before.epoch)
    await publish(bus, 4, 5)
    await until(lambda: number_of_entries(client) == 2)
    return before


def test_numbering_whose_engine_never_wrote_is_not_waited_for_once_another_has_written(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    positions: list[JournalPosition] = []

    async def act(bus: RedisBus, following: Following) -> None:
        before = await restart_numbering(bus, following, client)
        await until(lambda: bus.journal_position.epoch in caplog.text)
        await bus.close()
        successor = RedisBus(url)
        # What it finds in the database is of the first numbering.
        assert await successor.open(JournalWriter("second"), before) == []
        await asyncio.to_thread(write_position, successor.journal_position)
        positions.extend((before, bus.journal_position, successor.journal_position))
        await publish(successor, 6, 7)
        await until(lambda: 7 in following.heard)
        await successor.close()

    following = follow(url, act)

    assert len({position.epoch for position in positions}) == 3
    assert following.heard == [1, 2, 6, 7]
    assert following.missed == [positions[2].epoch]


class NoPrices(OperationalError):
    """A cause of its own: each is told once a minute."""


@pytest.mark.parametrize("is_away", [False, True])
def test_numbering_that_is_not_written_yet_is_waited_for_also_while_the_database_is_away(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture, is_away: bool
) -> None:
    looks = 0

    def note(sql: str, execute: Callable[[], Any]) -> Any:
        nonlocal looks
        looks += is_away or f'FROM "{EngineState._meta.db_table}"' in sql
        if is_away:
            raise NoPrices("the database is away")
        return execute()

    async def act(bus: RedisBus, following: Following) -> None:
        with around_statements(note):
            await restart_numbering(bus, following, client)
            if not is_away:
                await until(lambda: bus.journal_position.epoch in caplog.text)
            # Some looks that found nothing have come to their end.
            await until(lambda: looks >= 5)
        assert following.missed == []
        await asyncio.to_thread(write_position, two_before(bus.journal_position))
        await until(lambda: 5 in following.heard)

    following = follow(url, act)

    assert following.heard == [1, 2, 4, 5]
    assert len(following.missed) == 1
    told = [record for record in caplog.records if "wait for the database" in record.message]
    assert len(told) == 2 * is_away


def test_absence_of_an_engine_is_told_once_and_its_return_too(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.engine.bus.bus_reader.BLOCK_MS", 50)
    make_instrument("EURUSD")

    def told(what: str) -> int:
        return sum(what in record.message for record in caplog.records)

    async def come_late() -> None:
        listener = BusListener(
            lambda records: None, lambda symbol, records, came_ms: None, lambda epoch, known: None, set
        )
        reader = BusReader(url, Prices("bid"), listener, quiet_s=0.1)
        await reader.start()
        await until(lambda: told("No market engine is heard") > 0)
        bus = await opened(url)
        await publish(bus, 1, 3)
        await until(lambda: told("heard again") > 0)
        await bus.close()
        await reader.stop()

    with caplog.at_level("INFO", "market.engine.bus.bus_reader"):
        asyncio.run(come_late())

    assert (told("No market engine is heard"), told("heard again")) == (1, 1)


def rename(before: str, after: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {before} RENAME TO {after}")


def test_entry_that_is_taken_again_is_not_applied_twice(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    make_instrument("GBPUSD")
    table = Candle._meta.db_table

    async def act(bus: RedisBus, following: Following) -> None:
        await publish(bus, 1, 1)
        await until(lambda: following.heard == [1])
        await in_thread(rename, table, "away")
        bus.publish([taken(2), SeriesBegan("GBPUSD", True, NOON_MS, 0)])
        bus.seal()
        await until(lambda: sum("broke and goes on" in record.message for record in caplog.records) > 1)
        await in_thread(rename, "away", table)
        await until(lambda: following.heard == [1, 2])

    following = follow(url, act)

    minute = following.prices.history(catalogue.get("EURUSD")).builder.forming("1m")
    assert minute is not None
    assert minute.volume == 2


class Repriced:
    """An engine whose instrument goes from the simulated market to pushed prices, for some minutes."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.engine = Engine(Prices("bid"), DEMO)
        self.began_ms = 0

    async def run(self) -> None:
        runner = make_runner(self.engine, hear=self.records.extend)
        await in_thread(EngineState.objects.update, writer="")
        assert await runner.writer.try_lease()
        await in_thread(Instrument.objects.filter(symbol="EURUSD").update, source="push")
        await catalogue.load()
        await runner.series.settle()
        (began,) = (record for record in self.records if type(record) is SeriesBegan)
        self.began_ms = began.at_ms
        for after_s in range(1, MINUTES * 60, 7):
            price, at_ms = 1.1 + after_s / 100_000, began.at_ms + after_s * 1000
            tick = Tick("EURUSD", price, price + 0.0002, at_ms, 1.0)
            assert self.engine.take("push", [tick], at_ms) == [None]
            self.engine.keep_time(at_ms)
        await runner.writer.flush()
        await in_thread(runner.writer.lease.leave)


def bars(prices: Prices, timeframe: str, symbol: str = "EURUSD") -> list[bytes]:
    history = prices.history(catalogue.get(symbol))
    return [history.bars(timeframe, 500, closed_only=closed).ohlcv for closed in (True, False)]


def test_process_that_is_minutes_behind_counts_no_tick_twice(
    url: str, client: Redis, settings: LazySettings
) -> None:
    settings.DEMO = True

    async def act(bus: RedisBus, following: Following) -> None:
        repriced = Repriced()
        engine = repriced.engine
        engine.accept(Tick("EURUSD", 1.5, 1.5002, NOON_MS, 1.0), NOON_MS, DEMO)
        await repriced.run()
        # All of it is in the database before the process hears the first word.
        assert await in_thread(Candle.objects.filter(simulated=False, timeframe="1m").count) >= MINUTES - 1
        for _, records in groupby(repriced.records, lambda record: type(record) is SeriesBegan):
            bus.publish(list(records))
            bus.seal()
        await until(lambda: following.heard[-1:] == [engine.instruments["EURUSD"].seq])
        for timeframe in TIMEFRAMES:
            assert bars(following.prices, timeframe) == bars(engine.prices, timeframe), timeframe

    follow(url, act)
