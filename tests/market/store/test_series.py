"""Simulated and real prices of one instrument are two series, and nothing of one gets into the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
import time_machine
from django.conf import LazySettings
from django.db import OperationalError

from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.facts import DEMO
from instruments.models import Instrument
from market.engine.engine import Engine
from market.engine.listeners import EngineListener
from market.engine.runner import Runner
from market.models import Candle, FormerQuote, FormingMinute, LastQuote
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, SeriesBegan, Tick
from market.store.series import load, load_series, reload_candles
from tests.databases.queries import around_statements
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


async def minutes_stored() -> list[int]:
    """After noon."""
    return [(opened_at - NOON) // timedelta(minutes=1) for opened_at, *_ in await in_thread(stored)]


async def test_nothing_of_one_series_gets_into_the_other() -> None:
    async with SilentRunner() as silent:
        for after_s, price in ((-2, 1.7), (-1, 1.6), (1, 1.5)):
            silent.tick("demo", price, after_s)
        assert silent.engine.instruments["EURUSD"].flow.state().units != 0
        await silent.reprice("push")
        assert silent.price() is None
        assert silent.engine.instruments["EURUSD"].flow.state().units == 0
        assert silent.tick("demo", 1.5, 2) == "not_its_source"
        assert silent.tick("push", 1.1, 5) is None

    for timeframe in ("1m", "5m", "15m", "1h", "4h", "1d"):
        (bar,) = silent.bars(timeframe)
        assert (bar["low"], bar["high"], bar["volume"]) == (1.1, 1.1, 1.0)
        _, simulated, source, close = (await in_thread(stored, timeframe))[-1]
        assert (simulated, source, close) == (True, "demo", 1.5)
    # The numbers of the ticks go on, and readers hear where one series ends and the other begins.
    (began,) = [record for record in silent.records if isinstance(record, SeriesBegan)]
    assert (began.simulated, began.bid, began.seq) == (False, 0.0, 3)
    assert silent.engine.instruments["EURUSD"].seq == 4
    assert (await in_thread(LastQuote.objects.get)).seq == 4


async def test_both_series_are_kept_apart_for_the_same_interval() -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, 1)
        await silent.reprice("push")
        silent.tick("push", 1.1, 5)
        await silent.reprice("demo")
        assert [bar["close"] for bar in silent.bars("1h")] == [1.5]
    assert await in_thread(stored, "1h") == [(NOON, False, "push", 1.1), (NOON, True, "demo", 1.5)]


async def test_the_last_real_quote_comes_back_with_its_own_time() -> None:
    await Instrument.objects.aupdate(outlier_percent=0.5)
    async with SilentRunner() as silent:
        await silent.reprice("push")
        silent.tick("push", 1.1, 1)
        await silent.reprice("demo")
        silent.tick("demo", 1.5, 5)
        await silent.reprice("kraken")
        # What was refused since then, nobody knows.
        assert silent.engine.unsettled == {"EURUSD"}
    quote = silent.engine.prices.quotes.get("EURUSD")
    assert quote is not None
    assert (quote.bid, quote.time_ms) == (1.1, NOON_MS + 1000)
    assert (await in_thread(FormerQuote.objects.get)).simulated


async def test_a_source_that_changed_while_nothing_ran_ends_the_series_at_the_start() -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, 1)
    await in_thread(reprice, "push")
    async with SilentRunner() as silent:
        assert silent.tick("push", 1.1, 5) == "not_its_source"
        await silent.runner.series.settle()
        assert silent.tick("push", 1.1, 5) is None
    assert [bar["close"] for bar in silent.bars()] == [1.1]
    assert await in_thread(stored) == [(NOON, True, "demo", 1.5)]


async def test_real_candles_and_quote_are_there_after_a_restart() -> None:
    await in_thread(reprice, "push")
    async with SilentRunner() as silent:
        await silent.runner.series.settle()
        silent.tick("push", 1.1, -90)
        silent.tick("push", 1.2, 1)
    async with SilentRunner() as silent:
        await silent.runner.series.fill_simulated()
    assert [bar["close"] for bar in silent.bars()] == [1.1, 1.2]
    assert silent.price() == 1.2
    assert {simulated for _, simulated, *_ in await in_thread(stored)} == {False}


async def test_real_sources_share_a_series_and_each_candle_names_its_own() -> None:
    await in_thread(reprice, "kraken")
    async with SilentRunner() as silent:
        await silent.runner.series.settle()
        silent.tick("kraken", 1.1, -130)
        silent.tick("kraken", 1.2, -70)
        await silent.reprice("binance")
        silent.tick("binance", 1.3, -65)
        silent.tick("binance", 1.4, 1)
    assert [bar["close"] for bar in silent.bars()] == [1.1, 1.3, 1.4]
    assert [source for _, _, source, _ in await in_thread(stored)] == ["kraken", "kraken+binance"]


async def test_fallback_of_the_other_kind_is_never_let_in() -> None:
    await in_thread(Instrument.objects.filter(symbol="EURUSD").update, fallback="push")
    await in_thread(catalogue.load_now)
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, -120)
        assert silent.tick("push", 1.1, 5) == "not_its_source"


async def test_what_is_imported_while_prices_are_simulated_is_not_shown_among_them(
    instrument: Instrument,
) -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, -70)
        silent.tick("demo", 1.5, 1)
        await silent.runner.writer.flush()
        await in_thread(make_candle, instrument, "1m", NOON - timedelta(minutes=9), source="import")
        await reload_candles(silent.engine.prices, catalogue.get("EURUSD"))
        assert [bar["close"] for bar in silent.bars()] == [1.5, 1.5]


@pytest.mark.parametrize("is_read_before", [True, False])
@pytest.mark.parametrize(("is_heard", "shown"), [(True, [1.0802]), (False, [1.5, 1.5])])
async def test_candles_that_are_loaded_while_the_kind_changes_are_of_one_kind(
    instrument: Instrument, is_read_before: bool, is_heard: bool, shown: list[float]
) -> None:
    """The kind changes in the database, and in memory if that is heard."""
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, -70)
        silent.tick("demo", 1.5, 1)
        await silent.runner.writer.flush()
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
        assert [bar["close"] for bar in silent.bars()] == shown


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


async def test_source_that_is_put_back_before_the_change_was_written_is_let_in_again() -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, 1)
        async with refused_change(silent, "push"):
            pass
        assert silent.tick("demo", 1.5, 61) == "not_its_source"
        await silent.reprice("")
        assert silent.tick("demo", 1.5, 62) is None


async def test_a_change_that_the_database_refuses_is_made_once_it_answers() -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, 1)
        async with refused_change(silent, "push"):
            # The old series has ended, and its minute is closed with it.
            assert silent.tick("push", 1.1, 4) == "too_late"
        await silent.runner.series.settle()
        assert silent.tick("push", 1.1, 5) is None
    assert not await in_thread(FormingMinute.objects.filter(source="demo").exists)


class StoredMinutes(IdleListener):
    """What those who judge by prices are told of minutes that are made at the start."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def stored(self, symbols: Collection[str]) -> None:
        self.heard += sorted(symbols)

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        self.heard.append("notes, behind" if is_behind else "notes")
        return super().notes(is_behind=is_behind)


async def test_simulated_minutes_fill_what_nobody_was_sent_and_leave_the_interrupted_one(
    clock: time_machine.Traveller,
) -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, -70)
        silent.tick("demo", 1.7, 10)
    clock.shift(timedelta(minutes=5))
    async with SilentRunner() as silent:
        await silent.runner.series.fill_simulated()

    at_noon = await in_thread(Candle.objects.get, timeframe="1m", opened_at=NOON)
    assert [float(at_noon.high), float(at_noon.low), float(at_noon.volume)] == [1.7, 1.7, 1.0]
    assert await minutes_stored() == [-2, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(("fails_at", "told"), [(0, 2), (2, 1), (3, 2), (4, 2)])
async def test_minutes_that_are_made_at_the_start_are_told_whatever_fails_then(
    clock: time_machine.Traveller, fails_at: int, told: int
) -> None:
    """Reading minutes fails at one of the times."""
    await in_thread(make_instrument, "GBPUSD")
    symbols, listener, reads = ("EURUSD", "GBPUSD"), StoredMinutes(), 0
    async with SilentRunner() as silent:
        for symbol in symbols:
            tick = Tick(symbol, 1.5, 1.5002, NOON_MS - 70_000, 1.0)
            assert silent.engine.accept(tick, tick.time_ms, DEMO) is None
    clock.shift(timedelta(minutes=5))

    def fail(sql: str, run: Callable[[], Any]) -> Any:
        nonlocal reads
        reads += "AND opened_at >= " in sql
        if reads == fails_at and "AND opened_at >= " in sql:
            raise OperationalError("the database went away")
        return run()

    async with SilentRunner(listener) as silent:
        silent.runner.writer.is_behind = True
        with around_statements(fail):
            await silent.runner.series.fill_simulated()
        # What is noted for a successor is behind until then.
        assert listener.heard == ["notes, behind", *symbols[:told], "notes"]


async def test_nothing_is_simulated_for_the_time_of_a_real_source(clock: time_machine.Traveller) -> None:
    async with SilentRunner() as silent:
        silent.tick("demo", 1.5, -70)
        await silent.reprice("push")
        clock.shift(timedelta(minutes=10))
        await silent.reprice("demo")
        silent.runner.publish()
    clock.shift(timedelta(minutes=3))
    async with SilentRunner() as silent:
        await silent.runner.series.fill_simulated()
    assert await minutes_stored() == [-2, 11, 12]
