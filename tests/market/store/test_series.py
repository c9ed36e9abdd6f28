"""Simulated and real prices of one instrument are two series, and nothing of one gets into the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
import time_machine
from django.conf import LazySettings

from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from instruments.sources import DEMO
from market.engine.engine import Engine
from market.engine.listeners import EngineListener
from market.engine.runner import Runner
from market.models import Candle, FormerQuote, FormingMinute, LastQuote
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, SeriesBegan, Tick
from market.store.loading import load, load_series, reload_candles
from tests.factories import NOON, make_candle, make_instrument
from tests.market.running import IdleListener, make_runner
from tests.market.ticking import NOON_MS

from .test_engine_store import broken_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON + timedelta(seconds=20), tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def instrument(transactional_db: None, settings: LazySettings) -> Instrument:
    settings.DEMO = True
    return make_instrument("EURUSD")


def reprice(source: str) -> None:
    Instrument.objects.update(source=source)
    catalogue.load_now()


class SilentRunner:
    """A runner whose feeds are silent, on a clock that stands still."""

    def __init__(self, *listeners: EngineListener) -> None:
        self.records: list[AnyRecord] = []
        self.engine = Engine(Prices("bid"), DEMO)
        self.runner: Runner = make_runner(self.engine, hear=self.records.extend, listeners=listeners)

    async def __aenter__(self) -> SilentRunner:
        assert await self.runner.writer.try_lease()
        loaded = await in_thread(load, self.engine.prices, DEMO)
        self.engine.resume(loaded.checkpoints, NOON_MS)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.writer.flush()
        await in_thread(self.runner.writer.lease.leave)

    def tick(self, origin: str, price: float, after_s: float) -> str | None:
        at_ms = NOON_MS + round(after_s * 1000)
        tick = Tick("EURUSD", price, price + 0.0002, at_ms, 1.0)
        reason = self.engine.accept(tick, max(at_ms, NOON_MS), origin)
        self.runner.publish()
        return reason

    async def reprice(self, source: str) -> None:
        await in_thread(reprice, source)
        await self.runner.series.settle()

    def bars(self, timeframe: str = "1m") -> list[dict[str, Any]]:
        history = self.engine.prices.history(catalogue.get("EURUSD"))
        ohlcv = history.bars(timeframe, 500, closed_only=False).ohlcv
        return msgspec.json.decode(b"[" + ohlcv + b"]", type=list[dict[str, Any]])

    def price(self) -> float | None:
        quote = self.engine.prices.quotes.get("EURUSD")
        return None if quote is None else quote.bid


def stored(timeframe: str = "1m") -> list[tuple[datetime, bool, str, float]]:
    rows = Candle.objects.filter(timeframe=timeframe).order_by("opened_at", "simulated")
    return [(row.opened_at, row.simulated, row.source, float(row.close)) for row in rows]


async def from_demo_to_push() -> SilentRunner:
    async with SilentRunner() as silent:
        assert silent.tick("demo", 1.5, 1) is None
        await silent.reprice("push")
        assert silent.tick("push", 1.1, 5) is None
    return silent


def test_the_first_real_quote_is_real() -> None:
    async def switch() -> float | None:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, 1)
            await silent.reprice("push")
            return silent.price()

    assert asyncio.run(switch()) is None


def test_the_feed_of_the_old_kind_is_refused_at_once() -> None:
    async def switch() -> str | None:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, 1)
            await silent.reprice("push")
            return silent.tick("demo", 1.5, 2)

    assert asyncio.run(switch()) == "not_its_source"


def test_a_candle_of_no_interval_spans_the_change() -> None:
    silent = asyncio.run(from_demo_to_push())

    for timeframe in ("1m", "5m", "15m", "1h", "4h", "1d"):
        (bar,) = silent.bars(timeframe)
        assert (bar["low"], bar["high"], bar["volume"]) == (1.1, 1.1, 1.0)
        ((_, simulated, source, close),) = stored(timeframe)
        assert (simulated, source, close) == (True, "demo", 1.5)


def test_both_series_are_kept_apart_for_the_same_interval() -> None:
    async def there_and_back() -> list[dict[str, Any]]:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, 1)
            await silent.reprice("push")
            silent.tick("push", 1.1, 5)
            await silent.reprice("demo")
            return silent.bars("1h")

    (bar,) = asyncio.run(there_and_back())
    assert bar["close"] == 1.5
    assert stored("1h") == [(NOON, False, "push", 1.1), (NOON, True, "demo", 1.5)]


def test_the_last_real_quote_comes_back_with_its_own_time() -> None:
    async def there_and_back() -> SilentRunner:
        async with SilentRunner() as silent:
            await silent.reprice("push")
            silent.tick("push", 1.1, 1)
            await silent.reprice("demo")
            silent.tick("demo", 1.5, 5)
            await silent.reprice("kraken")
        return silent

    quote = asyncio.run(there_and_back()).engine.prices.quotes.get("EURUSD")
    assert quote is not None
    assert (quote.bid, quote.time_ms) == (1.1, NOON_MS + 1000)
    assert FormerQuote.objects.get().simulated


def test_the_numbers_of_the_ticks_go_on() -> None:
    silent = asyncio.run(from_demo_to_push())

    assert silent.engine.instruments["EURUSD"].seq == 2
    assert LastQuote.objects.get().seq == 2


def test_the_order_flow_begins_at_nought() -> None:
    async def switch() -> int:
        async with SilentRunner() as silent:
            for after_s, price in enumerate((1.5, 1.6, 1.7)):
                silent.tick("demo", price, after_s)
            assert silent.engine.instruments["EURUSD"].flow.state().units != 0
            await silent.reprice("push")
            return silent.engine.instruments["EURUSD"].flow.state().units

    assert asyncio.run(switch()) == 0


def test_readers_hear_where_one_series_ends_and_the_other_begins() -> None:
    silent = asyncio.run(from_demo_to_push())

    (began,) = [record for record in silent.records if isinstance(record, SeriesBegan)]
    assert (began.simulated, began.bid, began.seq) == (False, 0.0, 1)


def test_a_source_that_changed_while_nothing_ran_ends_the_series_at_the_start() -> None:
    async def run() -> SilentRunner:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, 1)
        await in_thread(reprice, "push")
        async with SilentRunner() as silent:
            assert silent.tick("push", 1.1, 5) == "not_its_source"
            await silent.runner.series.settle()
            assert silent.tick("push", 1.1, 5) is None
        return silent

    silent = asyncio.run(run())

    assert [bar["close"] for bar in silent.bars()] == [1.1]
    assert stored() == [(NOON, True, "demo", 1.5)]


def test_real_candles_and_quote_are_there_after_a_restart() -> None:
    async def run() -> SilentRunner:
        reprice_now = in_thread(reprice, "push")
        await reprice_now
        async with SilentRunner() as silent:
            await silent.runner.series.settle()
            silent.tick("push", 1.1, -90)
            silent.tick("push", 1.2, 1)
        async with SilentRunner() as silent:
            await silent.runner.series.fill_simulated()
        return silent

    silent = asyncio.run(run())

    assert [bar["close"] for bar in silent.bars()] == [1.1, 1.2]
    assert silent.price() == 1.2
    assert not Candle.objects.filter(simulated=True).exists()


def test_real_sources_share_a_series_and_each_candle_names_its_own() -> None:
    async def run() -> SilentRunner:
        await in_thread(reprice, "kraken")
        async with SilentRunner() as silent:
            await silent.runner.series.settle()
            silent.tick("kraken", 1.1, -130)
            silent.tick("kraken", 1.2, -70)
            await silent.reprice("binance")
            silent.tick("binance", 1.3, -65)
            silent.tick("binance", 1.4, 1)
        return silent

    silent = asyncio.run(run())

    assert [bar["close"] for bar in silent.bars()] == [1.1, 1.3, 1.4]
    assert [source for _, _, source, _ in stored()] == ["kraken", "kraken+binance"]


def test_fallback_of_the_other_kind_is_never_let_in() -> None:
    async def run() -> str | None:
        await in_thread(Instrument.objects.filter(symbol="EURUSD").update, fallback="push")
        await in_thread(catalogue.load_now)
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, -120)
            return silent.tick("push", 1.1, 5)

    assert asyncio.run(run()) == "not_its_source"


def test_what_is_imported_while_prices_are_simulated_is_not_shown_among_them(instrument: Instrument) -> None:
    async def run() -> list[float]:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, -70)
            silent.tick("demo", 1.5, 1)
            await silent.runner.writer.flush()
            await in_thread(make_candle, instrument, "1m", NOON - timedelta(minutes=9), source="import")
            await reload_candles(silent.engine.prices, catalogue.get("EURUSD"))
            return [bar["close"] for bar in silent.bars()]

    assert asyncio.run(run()) == [1.5, 1.5]


@asynccontextmanager
async def refused_change(silent: SilentRunner, source: str) -> AsyncIterator[None]:
    """Begun, and not written while this lasts."""
    await in_thread(reprice, source)
    away = broken_database("market_formerquote")
    await in_thread(away.__enter__)
    try:
        await silent.runner.series.settle()
        yield
    finally:
        await in_thread(away.__exit__, None, None, None)


def test_source_that_is_put_back_before_the_change_was_written_is_let_in_again() -> None:
    async def run() -> tuple[str | None, str | None]:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, 1)
            async with refused_change(silent, "push"):
                pass
            refused = silent.tick("demo", 1.5, 61)
            await silent.reprice("")
            return refused, silent.tick("demo", 1.5, 62)

    assert asyncio.run(run()) == ("not_its_source", None)


async def changing(*, is_read_before: bool, is_heard: bool) -> list[float]:
    """Candles are loaded anew while the kind changes: in the database, and in memory if that is heard."""
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, -70)
        silent.tick("demo", 1.5, 1)
        await silent.runner.writer.flush()
        instrument = await in_thread(Instrument.objects.get)
        await in_thread(make_candle, instrument, "1m", NOON - timedelta(minutes=9), source="import")
        facts, prices = catalogue.get("EURUSD"), silent.engine.prices
        real = await load_series(facts, NOON_MS, simulated=False)
        if not is_read_before:
            await in_thread(LastQuote.objects.update, simulated=False)
        reading = asyncio.create_task(reload_candles(prices, facts))
        await asyncio.sleep(0)
        if is_heard:
            prices.histories["EURUSD"] = real
        await in_thread(LastQuote.objects.update, simulated=False)
        await reading
        return [bar["close"] for bar in silent.bars()]


@pytest.mark.parametrize("is_read_before", [True, False])
def test_candles_that_are_loaded_while_the_kind_changes_are_of_the_new_one(is_read_before: bool) -> None:
    assert asyncio.run(changing(is_read_before=is_read_before, is_heard=True)) == [1.0802]


@pytest.mark.parametrize("is_read_before", [True, False])
def test_candles_of_one_kind_are_not_put_beside_those_of_the_other(is_read_before: bool) -> None:
    assert asyncio.run(changing(is_read_before=is_read_before, is_heard=False)) == [1.5, 1.5]


class StoredMinutes(IdleListener):
    def __init__(self) -> None:
        self.heard: list[Collection[str]] = []

    async def stored(self, symbols: Collection[str]) -> None:
        self.heard.append(symbols)


def test_simulated_minutes_fill_what_nobody_was_sent_and_leave_the_interrupted_one(
    clock: time_machine.Traveller,
) -> None:
    async def run() -> SilentRunner:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, -70)
            silent.tick("demo", 1.7, 10)
        clock.shift(timedelta(minutes=5))
        async with SilentRunner(listener) as silent:
            await silent.runner.series.fill_simulated()
        return silent

    listener = StoredMinutes()
    asyncio.run(run())

    assert listener.heard == [{"EURUSD"}]
    at_noon = Candle.objects.get(timeframe="1m", opened_at=NOON)
    assert [float(at_noon.high), float(at_noon.low), float(at_noon.volume)] == [1.7, 1.7, 1.0]
    opened = [(opened_at - NOON) // timedelta(minutes=1) for opened_at, *_ in stored()]
    assert opened == [-2, 0, 1, 2, 3, 4]


def test_nothing_is_simulated_for_the_time_of_a_real_source(clock: time_machine.Traveller) -> None:
    async def run() -> None:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, -70)
            await silent.reprice("push")
            clock.shift(timedelta(minutes=10))
            await silent.reprice("demo")
            silent.runner.publish()
        clock.shift(timedelta(minutes=3))
        async with SilentRunner() as silent:
            await silent.runner.series.fill_simulated()

    asyncio.run(run())

    minutes = [(at - NOON) // timedelta(minutes=1) for at, *_ in stored()]
    assert minutes == [-2, 11, 12]


def test_a_change_that_the_database_refuses_is_made_once_it_answers() -> None:
    async def run() -> tuple[str | None, str | None]:
        async with SilentRunner() as silent:
            silent.tick("demo", 1.5, 1)
            async with refused_change(silent, "push"):
                meanwhile = silent.tick("push", 1.1, 4)
            await silent.runner.series.settle()
            return meanwhile, silent.tick("push", 1.1, 5)

    # The old series has ended, and its minute is closed with it.
    assert asyncio.run(run()) == ("too_late", None)
    assert not FormingMinute.objects.filter(source="demo").exists()
