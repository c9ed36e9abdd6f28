"""What the simulated market is like over hours, months and a thousand years. Its prices are the same each
time, as tests/market/simulated shows: only a change of the simulation changes this."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from math import sqrt
from statistics import correlation, fmean

import pytest

from core.times import MINUTE_MS
from market.prices.order_flow import Absorption, AbsorptionWatch, OrderFlow
from market.prices.records import Tick
from market.simulated.profiles import PROFILES, Profile
from market.simulated.simulated_market import SimulatedMarket
from tests.market.simulated.simulation import (
    DAY_MS,
    HOUR_MS,
    START_MS,
    TRADED,
    YEAR_MS,
    make_bars,
    make_market,
    make_ticks,
    mean_square,
    returns_of,
    trades_of,
)

PIPS = {"BTCUSD": 1.0, "ETHUSD": 0.1, "TEST": 0.01}


def absorptions_of(symbol: str, hours: int) -> list[Absorption]:
    digits = PROFILES[symbol].digits
    flow, watch = OrderFlow(digits), AbsorptionWatch(digits, PIPS[symbol])
    found: list[Absorption] = []
    for tick in make_ticks(symbol, hours * HOUR_MS, "traded"):
        found += watch.take(tick, flow.take(tick, True))
    return found


@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "US500"])
def test_volatility_is_that_of_the_profile_and_variance_grows_as_in_a_random_walk(symbol: str) -> None:
    realised = sqrt(mean_square(returns_of(make_bars(symbol, 30 * DAY_MS))) * YEAR_MS / MINUTE_MS)
    assert 0.8 < realised / PROFILES[symbol].yearly_volatility < 1.25
    bars = make_bars(symbol, 150 * DAY_MS, 5 * MINUTE_MS)
    single = mean_square(returns_of(bars))
    for every in (3, 12, 48, 288):
        assert 0.7 < mean_square(returns_of(bars, every)) / single / every < 1.4


def test_minute_returns_do_not_predict_each_other() -> None:
    moves = returns_of(make_bars(span_ms=15 * DAY_MS))
    for lag in range(1, 6):
        together = fmean(earlier * later for earlier, later in zip(moves, moves[lag:], strict=False))
        assert abs(together) / mean_square(moves) < 0.03


@pytest.mark.parametrize("volume_kind", ["ticks", "traded"])
@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "XAUUSD", "AAPL"])
def test_bar_volumes_are_about_those_of_the_ticks(symbol: str, volume_kind: str) -> None:
    market = make_market(symbol, volume_kind=volume_kind)
    span = START_MS, START_MS + 2 * HOUR_MS
    by_ticks = sum(tick.volume for tick in market.ticks_between(*span))
    by_bars = sum(bar[5] for bar in market.bars_between(*span, MINUTE_MS))
    assert by_bars == pytest.approx(by_ticks, rel=0.15)


def test_slowest_instrument_always_has_a_quote_near() -> None:
    slow = Profile(100.0, 0.2, 0.05, 0.05, 1, 2)
    market = SimulatedMarket(7, "SLOW", 2, slow, "ticks")
    asked = range(START_MS, START_MS + HOUR_MS, 900)
    assert all(0 <= ms - market.quote_at(ms).time_ms <= 32_000 for ms in asked)


def test_prices_stay_near_their_base_for_a_thousand_years() -> None:
    market, base = make_market(), PROFILES["EURUSD"].base_price
    bids = [market.quote_at(START_MS + days * DAY_MS).bid for days in range(0, 365_250, 250)]
    assert 0.7 * base < min(bids) < max(bids) < 1.4 * base


@pytest.mark.parametrize("symbol", TRADED)
def test_sides_are_persistent_in_balance_and_go_with_the_moves(symbol: str) -> None:
    sides = [tick.side for tick in trades_of(symbol, 2 * HOUR_MS)]
    assert 0.1 < fmean(earlier * later for earlier, later in pairwise(sides)) < 0.5
    assert abs(fmean(sides)) < 0.1

    minutes = defaultdict[int, list[Tick]](list)
    for tick in make_ticks(symbol, 2 * HOUR_MS, "traded"):
        minutes[tick.time_ms // MINUTE_MS].append(tick)
    deltas = [sum(tick.side * tick.volume for tick in ticks) for ticks in minutes.values()]
    moves = [ticks[-1].bid - ticks[0].bid for ticks in minutes.values()]
    assert 0.25 < correlation(deltas, moves) < 0.8


@pytest.mark.parametrize(("symbol", "least", "most"), [("TEST", 20, 60), ("ETHUSD", 4, 30)])
def test_absorption_shows_now_and_then(symbol: str, least: int, most: int) -> None:
    found = absorptions_of(symbol, 2)

    assert 2 * least <= len(found) <= 2 * most
    assert {seen.side for seen in found} == {"bid", "ask"}
