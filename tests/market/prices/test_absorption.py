"""Heavy trading against one side that did not move the price."""

from __future__ import annotations

from itertools import chain
from math import isclose
from statistics import fmean, median, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from market.prices import order_flow
from market.prices.order_flow import WINDOW_MS, Absorption, AbsorptionWatch, FlowUpdate, RecentVolumes
from market.prices.records import Tick
from tests.market.ticking import NOON_MS

# Sold and bought in the 60 windows before; each side has a mean of 15, and a deviation just above 5.
ORDINARY = [(10.0, 20.0), (20.0, 10.0)] * 30
DEVIATION = stdev([10.0, 20.0] * 30)
LATER_MS = NOON_MS + 60 * WINDOW_MS


class Trading:
    """Windows of one instrument with two digits and a pip of 0.1."""

    def __init__(self, ordinary: list[tuple[float, float]] = ORDINARY, begins_ms: int = NOON_MS) -> None:
        self.watch = AbsorptionWatch(2, 0.1)
        self.found: list[Absorption] = []
        for number, (sold, bought) in enumerate(ordinary):
            self.sell(sold, begins_ms + number * WINDOW_MS)
            self.buy(bought, begins_ms + number * WINDOW_MS)

    def sell(
        self, volume: float, time_ms: int = LATER_MS, price: float = 100.0, spread: float = 0.05
    ) -> None:
        self._take(FlowUpdate(volume, 0.0, -volume, 0.0, price, time_ms), price, spread)

    def buy(self, volume: float, time_ms: int = LATER_MS, price: float = 100.0, spread: float = 0.05) -> None:
        self._take(FlowUpdate(0.0, volume, volume, 0.0, price, time_ms), price, spread)

    def quote(self, spread: float, time_ms: int = LATER_MS) -> None:
        self.found += self.watch.take(Tick("X", 100.0, 100.0 + spread, time_ms), None)

    def end(self, now_ms: int = LATER_MS + WINDOW_MS) -> list[Absorption]:
        self.found += self.watch.end_until(now_ms)
        return self.found

    def _take(self, update: FlowUpdate, price: float, spread: float) -> None:
        self.found += self.watch.take(Tick("X", price, price + spread, update.time_ms), update)


def test_sellers_are_absorbed_by_the_bid() -> None:
    trading = Trading()
    trading.sell(40.0, LATER_MS + 1_000, 100.0)
    trading.sell(20.0, LATER_MS + 2_000, 100.06)
    trading.buy(5.0, LATER_MS + 3_000, 100.1)
    (seen,) = trading.end()
    assert (seen.side, seen.volume, seen.delta) == ("bid", 60.0, -55.0)
    assert (seen.price, seen.price_range) == (100.02, 0.1)
    assert (seen.strength, seen.time_ms) == (round(45 / DEVIATION, 2), LATER_MS + WINDOW_MS)


def test_buyers_are_absorbed_by_the_ask_and_both_sides_of_one_window_may_absorb() -> None:
    trading, both = Trading(), Trading()
    trading.buy(60.0)
    both.buy(60.0)
    both.sell(60.0)
    assert [(seen.side, seen.volume, seen.delta) for seen in trading.end()] == [("ask", 60.0, 60.0)]
    assert [(seen.side, seen.delta) for seen in both.end()] == [("bid", 0.0), ("ask", 0.0)]


@pytest.mark.parametrize(
    "ordinary", [[], ORDINARY[:1], ORDINARY[:59], [(0.1, 0.1)] * 60], ids=["none", "one", "59", "all alike"]
)
def test_nothing_is_said_before_sixty_windows_that_differ_are_known(
    ordinary: list[tuple[float, float]],
) -> None:
    trading = Trading(ordinary)
    trading.sell(1_000.0)
    assert trading.end() == []


@pytest.mark.parametrize(
    ("ordinary", "deviation"),
    [
        ([(9_000.0, 1.0), (1.0, 9_000.0), *ORDINARY], DEVIATION),
        # A window without a seller counts as nought for the bid.
        ([(30.0, 1.0), (0.0, 2.0)] * 30, stdev([30.0, 0.0] * 30)),
    ],
)
def test_only_the_last_sixty_windows_count(ordinary: list[tuple[float, float]], deviation: float) -> None:
    trading = Trading(ordinary, LATER_MS - len(ordinary) * WINDOW_MS)
    trading.sell(60.0)
    assert [seen.strength for seen in trading.end()] == [round(45 / deviation, 2)]


def test_windows_without_trades_do_not_count() -> None:
    trading = Trading(begins_ms=NOON_MS - 3_600_000)
    for minutes in range(5, 60):
        trading.quote(0.05, NOON_MS - 3_600_000 + minutes * 60_000)
    trading.sell(60.0)
    assert [seen.strength for seen in trading.end()] == [round(45 / DEVIATION, 2)]


@pytest.mark.parametrize(
    ("volume", "spread", "moved", "is_seen"),
    [
        *((15 + deviations * DEVIATION, 0.01, 0.0, deviations > 2) for deviations in (1.999, 2.001)),
        # Two pips, or two spreads.
        *((60.0, 0.01, moved, moved <= 0.2) for moved in (0.2, 0.21)),
        *((60.0, 0.5, moved, moved <= 1.0) for moved in (1.0, 1.01)),
    ],
)
def test_volume_must_be_two_deviations_above_the_mean_and_the_price_must_not_move(
    volume: float, spread: float, moved: float, is_seen: bool
) -> None:
    trading = Trading()
    trading.sell(volume, spread=spread)
    if moved:
        trading.sell(1.0, price=100.0 + moved, spread=spread)
    assert bool(trading.end()) == is_seen


def test_quotes_between_the_trades_have_a_say_in_the_median_spread() -> None:
    trading = Trading()
    trading.sell(60.0, spread=0.01)
    trading.sell(1.0, price=101.0, spread=0.01)
    for _ in range(3):
        trading.quote(0.5)
    assert [seen.price_range for seen in trading.end()] == [1.0]


def test_next_tick_ends_a_window_as_the_clock_does() -> None:
    trading = Trading()
    trading.sell(60.0, LATER_MS)
    trading.sell(60.0, LATER_MS + WINDOW_MS - 1)
    assert trading.found == []
    trading.quote(0.05, LATER_MS + WINDOW_MS)
    assert [(seen.volume, seen.time_ms) for seen in trading.found] == [(120.0, LATER_MS + WINDOW_MS)]


def test_clock_does_not_end_a_window_early_and_not_twice_whatever_was_under_way() -> None:
    trading = Trading()
    trading.sell(60.0)
    assert trading.end(LATER_MS + WINDOW_MS - 1) == []
    assert len(trading.end(LATER_MS + WINDOW_MS)) == 1
    trading.sell(5_000.0, LATER_MS + WINDOW_MS - 1)
    assert len(trading.end(LATER_MS + 2 * WINDOW_MS)) == 1


def test_fractions_are_given_without_binary_noise() -> None:
    trading = Trading()
    for _ in range(300):
        trading.sell(0.1)
        trading.sell(0.2)
    (seen,) = trading.end()
    assert (seen.volume, seen.delta) == (90.0, -90.0)


volumes = st.lists(st.integers(0, 10**14) | st.sampled_from([0, 1, 10**16]), min_size=61, max_size=400)


@settings(max_examples=30)
@given(volumes)
def test_mean_and_deviation_stay_exact_over_a_long_run(made: list[int]) -> None:
    known = RecentVolumes(60)
    for number, volume in enumerate(made):
        before = made[max(0, number - 60) : number]
        strength = known.strength(volume)
        if len(before) < 60 or len(set(before)) == 1:
            assert strength is None
        elif number % 20 == 0:
            expected = (volume - fmean(before)) / stdev(before)
            assert strength is not None
            assert isclose(strength, expected, rel_tol=1e-9, abs_tol=1e-9)
        known.add(volume)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, unique_by=lambda pair: pair[0]))
def test_median_of_counted_values_is_that_of_the_values(pairs: list[tuple[int, int]]) -> None:
    one_by_one = list(chain.from_iterable([value] * count for value, count in pairs))

    assert order_flow.median(dict(pairs)) == median(one_by_one)
