"""Trades of the simulated market: who took, at what price, and what the order flow makes of it."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from market.prices.records import Tick
from market.simulated.activity import TRADE_SHARE

from .simulation import START_MS, make_market, make_ticks

pytestmark = pytest.mark.served

TRADED = ("BTCUSD", "ETHUSD", "TEST")


def trades_of(symbol: str, span_ms: int) -> list[Tick]:
    return [tick for tick in make_ticks(symbol, span_ms, "traded") if tick.side]


def test_trades_do_not_change_between_versions() -> None:
    made = [(tick.side, tick.price, tick.volume) for tick in make_ticks("BTCUSD", 1_000, "traded")]

    assert made == [
        (1, 91180.45, 0.009),
        (1, 91179.73, 0.007),
        (-1, 91175.67, 0.008),
        (-1, 91174.73, 0.008),
        (-1, 91173.60, 0.036),
        (-1, 91172.66, 0.036),
        (-1, 91171.42, 0.005),
        (0, None, 0.0),
    ]


@pytest.mark.parametrize("symbol", TRADED)
def test_buyers_trade_at_the_ask_and_sellers_at_the_bid(symbol: str) -> None:
    for tick in trades_of(symbol, 10 * MINUTE_MS):
        assert tick.price == (tick.ask if tick.side > 0 else tick.bid)


def test_some_quotes_change_without_a_trade() -> None:
    ticks = make_ticks("BTCUSD", 10 * MINUTE_MS, "traded")
    quotes = [tick for tick in ticks if not tick.side]

    assert len(quotes) / len(ticks) == pytest.approx(1 - TRADE_SHARE, abs=0.05)
    assert {(tick.volume, tick.price) for tick in quotes} == {(0.0, None)}


def test_where_ticks_are_the_volume_nobody_knows_who_took() -> None:
    assert {(tick.side, tick.price) for tick in make_ticks("EURUSD", 10 * MINUTE_MS)} == {(0, None)}


def test_trades_leave_the_quotes_as_they_are() -> None:
    quotes = [(tick.time_ms, tick.bid, tick.ask) for tick in make_ticks("BTCUSD", MINUTE_MS)]

    assert [(t.time_ms, t.bid, t.ask) for t in make_ticks("BTCUSD", MINUTE_MS, "traded")] == quotes


def test_trades_of_a_span_are_those_of_its_parts() -> None:
    market, middle = make_market("ETHUSD", volume_kind="traded"), START_MS + 33_333
    late = market.ticks_between(middle, START_MS + MINUTE_MS)

    assert market.ticks_between(START_MS, middle) + late == make_ticks("ETHUSD", MINUTE_MS, "traded")
