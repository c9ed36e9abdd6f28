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
from market.store.series import load
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


def seen() -> tuple[list[float], tuple[float, float, int]]:
    quote = market.quote("EURUSD")
    assert quote is not None
    return closes(), (quote.bid, quote.spread, quote.seq)


def test_candles_and_the_quote_have_the_digits_that_are_written_now_and_lose_none() -> None:
    make_instrument("EURUSD", source="push", digits=5)

    async def run() -> list[Any]:
        async with running():
            found = [seen()]
            for digits in (3, 5):
                await edit(digits)
                found.append(seen())
            return found

    before, shortened, after = asyncio.run(run())
    assert before == after == (BIDS, (1.08789, 0.0001, 3))
    assert shortened == ([1.081, 1.085, 1.088], (1.088, 0.0, 3))


def test_process_without_an_engine_and_one_that_begins_late_have_them_too() -> None:
    make_instrument("EURUSD", source="push", digits=5)

    async def run() -> list[list[float]]:
        async with running():
            pass
        await in_thread(load, market.prices)
        found = [closes("1h")]
        await edit(3)
        found += [closes("1h"), closes()]
        market.prices.clear()
        runner = market.market.own_engine()
        market.market.runner = runner
        try:
            for digits in (4, 3):
                await edit(digits)
            assert await runner.writer.try_lease()
            await runner.start()
            return [*found, closes()]
        finally:
            await market.stop()

    short = [1.081, 1.085, 1.088]
    assert asyncio.run(run()) == [[1.08456, 1.08789], short[1:], short, short]


def test_order_flow_goes_on_with_the_new_digits_and_its_running_sum() -> None:
    make_instrument("EURUSD", source="push", digits=1)
    engine = Engine(Prices("bid"))

    def take(*bids: float) -> list[tuple[float, float | None]]:
        at_ms = NOON_MS + 1000 * len(engine.records)
        ticks = [Tick("EURUSD", bid, bid + 0.2, at_ms + 1000 * n) for n, bid in enumerate(bids)]
        assert engine.take("push", ticks, at_ms) == [None] * len(bids)
        taken = [record for record in engine.records if isinstance(record, TickAccepted)]
        return [(each.cumulative_delta, each.price) for each in taken[-len(bids) :]]

    assert [delta for delta, _ in take(1.0, 1.1, 1.2)] == [0, 1, 2]
    write(digits=3)
    # The same again is no move, whatever it is measured by.
    assert take(1.2, 1.204, 1.203) == [(3, 1.3), (4, 1.304), (3, 1.303)]


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
