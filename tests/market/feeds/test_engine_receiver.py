"""A venue's history is taken only while that venue prices the instrument."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import Engine
from market.engine.feeds.supervisor import EngineReceiver
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
MINUTE = PriceBar(NOON_MS - 2 * MINUTE_MS, 1.08, 1.08, 1.08, 1.08, 3.0, 1.09, 1.09)


def make_engine(source: str, fallback: str = "") -> Engine:
    make_instrument("EURUSD", source=source, fallback=fallback)
    engine = Engine(Prices("bid"))
    engine.keep_time(NOON_MS - 10 * MINUTE_MS)
    return engine


def name_source(source: str) -> None:
    Instrument.objects.update(source=source)
    catalogue.load_now()


def filled(engine: Engine, feed: str) -> list[str]:
    """The bases of the minutes that are written, after this feed has brought one."""
    EngineReceiver(engine, feed, ["EURUSD"], lambda: None).backfill("EURUSD", [MINUTE], "trades")
    return [basis for _, timeframe, _, basis in engine.rows if timeframe == "1m"]


def test_source_of_an_instrument_fills_its_minutes() -> None:
    assert filled(make_engine("kraken"), "kraken") == ["trades"]


def test_real_minutes_do_not_come_into_a_simulated_series_that_is_still_to_end() -> None:
    engine = make_engine("demo")
    assert engine.take("demo", [Tick("EURUSD", 1.5, 1.6, NOON_MS - 9 * MINUTE_MS)], NOON_MS) == [None]
    name_source("kraken")
    engine.keep_time(NOON_MS)
    before = engine.rows.copy()

    filled(engine, "kraken")

    assert engine.rows == before


def test_feed_that_was_replaced_while_it_waited_for_its_history_fills_nothing() -> None:
    engine = make_engine("kraken")
    name_source("binance")

    assert filled(engine, "kraken") == []


def test_fallback_fills_nothing_while_it_stands_by() -> None:
    assert filled(make_engine("binance", fallback="kraken"), "kraken") == []


def test_instrument_that_was_taken_out_is_not_filled() -> None:
    engine = make_engine("kraken")
    Instrument.objects.update(active=False)
    catalogue.load_now()

    assert filled(engine, "kraken") == []
