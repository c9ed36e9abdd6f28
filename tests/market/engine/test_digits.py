"""Staff correct the digits of an instrument while it is priced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from pytest_django import Settings

from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime as market
from market.engine.engine import Engine
from market.prices.quotes import Prices
from market.prices.records import AbsorptionFound, Tick, TickAccepted
from market.store.loading import load
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db", "clock")]
BIDS = [1.08123, 1.08456, 1.08789]


@pytest.fixture(autouse=True)
def in_one_process(settings: Settings) -> None:
    settings.REDIS_URL = ""


def write(**fields: Any) -> None:
    Instrument.objects.update(**fields)
    catalogue.load_now()


def closes(timeframe: str = "1m") -> list[float]:
    bars = market.prices.history(catalogue.get("EURUSD")).bars(timeframe, 500, closed_only=False)
    rows = msgspec.json.decode(b"[%s]" % bars.ohlcv, type=list[dict[str, Any]])
    return [row["close"] for row in rows]


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    """The service in one process, with a tick in each of the last three minutes."""
    await market.start()
    try:
        for minutes, bid in zip((-2, -1, 0), BIDS, strict=True):
            tick = Tick("EURUSD", bid, bid + 0.0001, NOON_MS + minutes * MINUTE_MS)
            assert await market.push("push:desk", [tick]) == [None]
        yield
    finally:
        await market.stop()


async def edit(digits: int) -> None:
    await in_thread(write, digits=digits)
    await market.market.refresh_feeds({})


def test_all_candles_have_the_digits_that_are_written_now_and_lose_none() -> None:
    make_instrument("EURUSD", source="push", digits=5)

    async def run() -> list[list[float]]:
        async with running():
            seen = [closes()]
            for digits in (3, 5):
                await edit(digits)
                seen += [closes()]
            return seen

    assert asyncio.run(run()) == [BIDS, [1.081, 1.085, 1.088], BIDS]


def quoted() -> tuple[float, float, int]:
    quote = market.quote("EURUSD")
    assert quote is not None
    return quote.bid, quote.spread, quote.seq


def test_quote_that_no_tick_follows_has_the_digits_of_its_candles() -> None:
    make_instrument("EURUSD", source="push", digits=5)

    async def run() -> list[tuple[float, float, int]]:
        async with running():
            seen = [quoted()]
            for digits in (3, 5):
                await edit(digits)
                seen += [quoted()]
            return seen

    assert asyncio.run(run()) == [(1.08789, 0.0001, 3), (1.088, 0.0, 3), (1.08789, 0.0001, 3)]


def test_process_without_an_engine_serves_the_digits_that_are_written_now() -> None:
    make_instrument("EURUSD", source="push", digits=5)

    async def run() -> list[list[float]]:
        async with running():
            pass
        try:
            await in_thread(load, market.prices)
            before = closes("1h")
            await edit(3)
            return [before, closes("1h"), closes()]
        finally:
            market.prices.clear()

    assert asyncio.run(run()) == [[1.08456, 1.08789], [1.085, 1.088], [1.081, 1.085, 1.088]]


def test_process_that_waits_for_the_lease_begins_with_the_digits_that_are_written_then() -> None:
    make_instrument("EURUSD", source="push", digits=5)

    async def run() -> list[float]:
        async with running():
            pass
        runner = market.market.own_engine()
        market.market.runner = runner
        try:
            for digits in (4, 3):
                await edit(digits)
            assert await runner.writer.try_lease()
            await runner.start()
            return closes()
        finally:
            await market.stop()

    assert asyncio.run(run()) == [1.081, 1.085, 1.088]


def take(engine: Engine, *bids: float, **fields: Any) -> list[TickAccepted]:
    """A tick a second."""
    first_s = engine.instruments["EURUSD"].seq if engine.instruments else 0
    for second, bid in enumerate(bids, first_s):
        at_ms = NOON_MS + second * 1000
        assert engine.accept(Tick("EURUSD", bid, bid + 0.2, at_ms, **fields), at_ms) is None
    taken = [record for record in engine.records if isinstance(record, TickAccepted)]
    engine.records.clear()
    return taken


def test_order_flow_goes_on_with_the_new_digits_and_its_running_sum() -> None:
    make_instrument("EURUSD", source="push", digits=1)
    engine = Engine(Prices("bid"))
    assert [taken.cumulative_delta for taken in take(engine, 1.0, 1.1, 1.2)] == [0, 1, 2]
    write(digits=3)

    # The same again is no move, whatever it is measured by.
    same, higher, lower = take(engine, 1.2, 1.204, 1.203)

    assert [same.cumulative_delta, higher.cumulative_delta, lower.cumulative_delta] == [3, 4, 3]
    assert [same.price, higher.price, lower.price] == [1.3, 1.304, 1.303]


def test_absorption_remembers_what_is_usual_and_goes_by_the_new_pip() -> None:
    make_instrument(
        "EURUSD", source="push", digits=2, pip_size="0.01", order_flow_source="trades", volume_kind="traded"
    )
    engine = Engine(Prices("bid"))

    def trade(second: int, price: float, volume: float) -> None:
        at_ms = NOON_MS + second * 1000
        tick = Tick("EURUSD", price, price + 0.001, at_ms, volume, -1, price)
        assert engine.accept(tick, at_ms) is None

    for window in range(61):
        trade(5 * window, 1.0, 1.0 + window % 2)
    write(digits=3, pip_size="0.001")
    # Half a pip as it was, and five as they are.
    trade(5 * 61, 1.0, 500.0)
    trade(5 * 61 + 1, 1.005, 1.0)
    trade(5 * 62, 1.0, 500.0)
    trade(5 * 63, 1.0, 1.0)

    found = [record for record in engine.records if isinstance(record, AbsorptionFound)]

    assert [(record.volume, record.time_ms) for record in found] == [(500.0, NOON_MS + 5 * 63 * 1000)]
