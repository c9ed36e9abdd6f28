"""The simulated market at any rate: as many ticks as asked, and still a market."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from market.simulated.profiles import PROFILES
from market.simulated.simulated_market import RapidMarket

from .simulation import START_MS, make_market, points_of

pytestmark = pytest.mark.served


def make_rapid(
    rate: float = 1_000, symbol: str = "EURUSD", seed: int = 7, volume_kind: str = "ticks"
) -> RapidMarket:
    profile = PROFILES[symbol]
    return RapidMarket(seed, symbol, profile.digits, profile, volume_kind, rate)


@pytest.mark.parametrize("rate", [0.5, 3, 20, 1_000, 20_000])
def test_rate_is_exact_over_time(rate: float) -> None:
    made = make_rapid(rate).ticks_between(START_MS, START_MS + 10_000)

    assert len(made) == pytest.approx(10 * rate, abs=1)


moments = st.integers(START_MS, START_MS + 600)


@settings(max_examples=40)
@given(st.tuples(moments, moments, moments), st.sampled_from([7, 150, 3_000]))
def test_ticks_of_a_span_are_those_of_its_parts(chosen: tuple[int, int, int], rate: int) -> None:
    start, middle, end = sorted(chosen)
    market = make_rapid(rate)
    parts = market.ticks_between(start, middle) + market.ticks_between(middle, end)

    assert parts == make_rapid(rate).ticks_between(start, end)
    assert all(start <= tick.time_ms < end for tick in parts)


def test_another_seed_makes_another_market() -> None:
    span = START_MS, START_MS + 100

    assert make_rapid(seed=8).ticks_between(*span) != make_rapid().ticks_between(*span)


@pytest.mark.parametrize("rate", [100, 20_000])
def test_no_tick_repeats_the_one_before(rate: int) -> None:
    """The engine would drop it as a duplicate."""
    made = make_rapid(rate).ticks_between(START_MS, START_MS + 1_000)

    assert all(earlier != later for earlier, later in pairwise(made))
    assert all(earlier.time_ms <= later.time_ms for earlier, later in pairwise(made))


@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "US500"])
def test_prices_are_those_of_the_ordinary_market(symbol: str) -> None:
    """So that its stored candles go on without a jump."""
    market, spread = make_market(symbol), PROFILES[symbol].spread
    for tick in make_rapid(50, symbol).ticks_between(START_MS, START_MS + 20_000):
        assert abs(tick.bid - market.quote_at(tick.time_ms).bid) < 4 * spread + 0.0002 * tick.bid


def test_tick_moves_about_a_point() -> None:
    made = make_rapid().ticks_between(START_MS, START_MS + 2_000)
    moves = [points_of(later.bid - earlier.bid, "EURUSD") for earlier, later in pairwise(made)]

    assert 0.6 < pstdev(moves) < 2.4
    assert 2 < points_of(fmean(tick.ask - tick.bid for tick in made), "EURUSD") < 4


def test_trades_have_sides_and_prices_of_the_quote() -> None:
    made = make_rapid(symbol="BTCUSD", volume_kind="traded").ticks_between(START_MS, START_MS + 2_000)

    assert {tick.side for tick in made} == {-1, 0, 1}
    for tick in made:
        assert tick.price == {1: tick.ask, -1: tick.bid, 0: None}[tick.side]
        assert (tick.volume > 0) == (tick.side != 0)
