"""A candle that was closed before its time, and whose market opened again within it, forms again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import time_machine
from django.conf import LazySettings

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument, TradingCalendar
from market.engine.engine import Engine
from market.models import Candle
from market.prices.candles import COARSER
from market.prices.history import CandleRow
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import NOON, make_calendar, make_instrument
from tests.market.running import flush, restarted
from tests.market.store.test_series import SilentRunner
from tests.market.ticking import HOUR_MS, NOON_MS

pytestmark = [pytest.mark.django_db(transaction=True)]
ALWAYS, NEVER_TODAY = "24/7", "Sat 10:00-11:00"


@pytest.fixture(autouse=True)
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def instrument(transactional_db: None, settings: LazySettings) -> Instrument:
    settings.DEMO = True
    return make_instrument("EURUSD", source="push", calendar=make_calendar("desk", ALWAYS), stale_after_s=600)


def trade(engine: Engine, minute: int, price: float = 1.0) -> None:
    at_ms = NOON_MS + minute * MINUTE_MS
    assert engine.accept(Tick("EURUSD", price, price + 0.1, at_ms, 1.0), at_ms, "push") is None


def pass_time(engine: Engine, minute: float) -> None:
    engine.keep_time(NOON_MS + round(minute * MINUTE_MS) + 2_500)


def set_sessions(sessions: str) -> None:
    TradingCalendar.objects.update(sessions=sessions)
    catalogue.load_now()


def closed(prices: Prices, timeframe: str) -> list[CandleRow]:
    return prices.history(catalogue.get("EURUSD")).rows(timeframe, 500, closed_only=True)


def all_closed(prices: Prices) -> dict[str, int]:
    return {timeframe: len(closed(prices, timeframe)) for timeframe in COARSER}


NONE, ONE = dict.fromkeys(COARSER, 0), dict.fromkeys(COARSER, 1)


def heard(engine: Engine) -> Prices:
    """What a process has that reads the records."""
    prices = Prices("bid")
    for record in engine.records:
        prices.apply(record, catalogue.get("EURUSD"))
    return prices


def test_candles_of_a_series_that_comes_back_within_them_form_again(clock: time_machine.Traveller) -> None:
    clock.shift(20)

    async def there_and_back() -> SilentRunner:
        async with SilentRunner() as silent:
            assert silent.tick("push", 1.1, 5) is None
            await silent.reprice("demo")
            await silent.reprice("push")
            assert silent.tick("push", 1.3, 65) is None
        return silent

    prices = asyncio.run(there_and_back()).engine.prices

    assert len(closed(prices, "1m")) == 1
    assert all_closed(prices) == NONE
    prices.history(catalogue.get("EURUSD")).close_until(NOON_MS + HOUR_MS)
    (hour,) = closed(prices, "1h")
    assert (hour.high, hour.volume) == (1.3, 2.0)


def closed_by_mistake() -> Engine:
    """For a minute, in the middle of a session."""
    engine = Engine(Prices("bid"))
    pass_time(engine, -1)
    trade(engine, 0, 1.0)
    pass_time(engine, 1)
    set_sessions(NEVER_TODAY)
    pass_time(engine, 1.1)
    assert all_closed(engine.prices) == ONE
    return engine


def test_calendar_that_was_closed_by_mistake_leaves_no_closed_candle_that_changes() -> None:
    engine = closed_by_mistake()
    set_sessions(ALWAYS)
    pass_time(engine, 2)
    trade(engine, 2, 1.3)
    pass_time(engine, 3)
    trade(engine, 3, 1.4)

    assert all_closed(engine.prices) == all_closed(heard(engine)) == NONE
    engine.keep_time(NOON_MS + HOUR_MS + 2_500)
    for prices in (engine.prices, heard(engine)):
        (hour,) = closed(prices, "1h")
        assert (hour.high, hour.volume) == (1.4, 3.0)


def test_flat_minute_opens_them_again_too() -> None:
    engine = closed_by_mistake()
    set_sessions(ALWAYS)
    for second in range(70, 200, 10):
        engine.take("push", [], NOON_MS + second * 1000)
        engine.keep_time(NOON_MS + second * 1000)

    assert len(closed(engine.prices, "1m")) > 1
    assert all_closed(engine.prices) == all_closed(heard(engine)) == NONE


def test_process_that_begins_while_it_is_closed_opens_them_again_and_one_that_begins_later_has_them_open(
    clock: time_machine.Traveller,
) -> None:
    flush(closed_by_mistake())
    clock.shift(80)
    engine, other = restarted(), restarted()
    other.keep_time(NOON_MS + 3 * MINUTE_MS)
    # As long as the market stays closed.
    assert all_closed(engine.prices) == all_closed(other.prices) == ONE
    assert other.rows == []
    set_sessions(ALWAYS)
    trade(engine, 2, 1.3)

    assert all_closed(engine.prices) == all_closed(restarted().prices) == NONE


def test_candle_that_was_stored_too_early_is_whole_after_a_kill(clock: time_machine.Traveller) -> None:
    engine = closed_by_mistake()
    set_sessions(ALWAYS)
    pass_time(engine, 2)
    trade(engine, 2, 1.3)
    pass_time(engine, 3)
    flush(engine)
    clock.shift(5 * 3600)

    successor = restarted()
    successor.keep_time(NOON_MS + 5 * HOUR_MS)
    flush(successor)

    hour = Candle.objects.get(timeframe="1h")
    assert (float(hour.high), float(hour.volume)) == (1.3, 2.0)
    assert closed(successor.prices, "1h")[0].volume == 2.0
