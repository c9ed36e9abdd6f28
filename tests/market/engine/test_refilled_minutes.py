"""What lies between, behind and around minutes out of a venue's history is of the prices that it repeats."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from market.engine.engine import Engine
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

pytestmark = pytest.mark.django_db
LAST_MS = NOON_MS + 10 * MINUTE_MS


@pytest.fixture
def engine() -> Engine:
    """It has sent a tick at 11:58 and 11:59, and was lost."""
    make_instrument("EURUSD", source="kraken", stale_after_s=3600)
    engine = Engine(Prices("bid"))
    for minute in (-2, -1):
        engine.accept(Tick("EURUSD", 1.0, 1.1, NOON_MS + minute * MINUTE_MS, 1.0), at_ms(minute), "kraken")
    return engine


def at_ms(minute: int) -> int:
    return NOON_MS + minute * MINUTE_MS


def bar(minute: int, ask_above: float = 0.0) -> PriceBar:
    prices = 1.02, 1.09, 1.0, 1.05
    return PriceBar(at_ms(minute), *prices, 1.0, 1.09 + ask_above, 1.0 + ask_above)


def fill(engine: Engine, *minutes: PriceBar, basis: str = "trades") -> None:
    engine.backfill("EURUSD", minutes, basis, LAST_MS)


def go_on(engine: Engine, since: int, until: int) -> None:
    """Alive, and without a tick."""
    for second in range(since * 60, until * 60 + 10, 10):
        engine.take("kraken", [], NOON_MS + second * 1000)
        engine.keep_time(NOON_MS + second * 1000)


def kept(engine: Engine, timeframe: str = "1m") -> dict[int, str]:
    rows = [(candle, basis) for _, name, candle, basis in engine.rows if name == timeframe]
    return {(candle.opened_ms - NOON_MS) // MINUTE_MS: basis for candle, basis in rows}


def test_quiet_minute_between_trades_is_of_trades_as_well_and_so_is_what_holds_one(engine: Engine) -> None:
    fill(engine, bar(1), bar(3), bar(6))

    assert kept(engine) == {-2: "bid", -1: "bid", **dict.fromkeys(range(1, 7), "trades")}
    assert kept(engine, "5m") == {-5: "bid", 0: "trades"}
    assert kept(engine, "1h") == {-60: "bid"}


@pytest.mark.parametrize(("basis", "marked"), [("bid", {"1m": [1, 6], "5m": [0]}), ("trades", {})])
def test_venue_s_own_bar_of_bid_and_ask_is_marked_and_so_is_what_holds_one(
    engine: Engine, basis: str, marked: dict[str, list[int]]
) -> None:
    fill(engine, bar(1), bar(6), basis=basis)
    found: dict[str, list[int]] = {}
    for _, timeframe, candle, _ in engine.rows:
        if candle.by_venue:
            found.setdefault(timeframe, []).append((candle.opened_ms - NOON_MS) // MINUTE_MS)
    assert found == marked


def test_quiet_minutes_after_trades_are_of_trades_until_a_tick_comes_also_for_a_successor(
    engine: Engine,
) -> None:
    fill(engine, bar(8), bar(9))
    go_on(engine, 10, 13)
    engine.accept(Tick("EURUSD", 1.0, 1.1, at_ms(13) + 30_000, 1.0), at_ms(13) + 30_000, "kraken")
    go_on(engine, 14, 16)
    successor = Engine(Prices("bid"))
    for record in engine.records:
        successor.repeat(record, LAST_MS)

    assert [kept(engine)[minute] for minute in range(9, 15)] == ["trades"] * 4 + ["bid"] * 2
    assert successor.rows == engine.rows


@pytest.mark.parametrize(("basis", "above", "ask"), [("trades", 0.0, 1.05), ("bid", 0.02, 1.07)])
def test_quiet_minute_has_the_ask_that_the_minute_before_ended_with(
    engine: Engine, basis: str, above: float, ask: float
) -> None:
    fill(engine, bar(1, above), bar(3, above), basis=basis)

    (quiet,) = [row for _, name, row, _ in engine.rows if name == "1m" and row.opened_ms == at_ms(2)]
    assert (quiet.close, quiet.ask_low, quiet.ask_high) == (1.05, ask, ask)
