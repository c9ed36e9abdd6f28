"""A web process that hears late, or twice, that another series of an instrument begins."""

from __future__ import annotations

from itertools import groupby

import pytest
from django.conf import LazySettings
from django.db import connection
from redis import Redis

from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from instruments.sources import DEMO
from market.engine.bus.redis_bus import RedisBus
from market.engine.engine import Engine
from market.models import Candle, EngineState
from market.prices.candles import TIMEFRAMES
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, SeriesBegan, Tick
from tests.factories import make_instrument
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS
from tests.patience import until

from .test_bus import Following, client, follow, publish, taken, url

__all__ = ["client", "url"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]

# Of more than one candle of five minutes.
MINUTES = 12


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


def bars(prices: Prices, timeframe: str) -> list[bytes]:
    history = prices.history(catalogue.get("EURUSD"))
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
