"""Prices too far from the last one to be believed at once."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.engine.admission import AGREEING, Outliers
from market.engine.engine import Engine
from market.engine.status import status_of
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_calendar, make_instrument
from tests.market.ticking import NOON_MS, make_facts, ms

QUIET = [PriceBar(NOON_MS - n * MINUTE_MS, 10.0, 10.001, 10.0, 10.0, 1.0, 10.0, 10.0) for n in range(10)]


def at(mid: float, after_ms: int = 0, *, spread: float = 0.0) -> Tick:
    return Tick("X", mid - spread / 2, mid + spread / 2, NOON_MS + after_ms, 1.0)


class Door:
    """As the engine asks it."""

    def __init__(
        self, *, percent: float = 0.5, hours: str = "always", minutes: list[PriceBar] = QUIET
    ) -> None:
        self.outliers, self.minutes = Outliers(), minutes
        self.last: Tick | None = None
        self.facts = make_facts("X", hours, outlier_percent=percent)

    def take(self, *ticks: Tick) -> list[bool]:
        """Whether each was taken."""
        taken = []
        for tick in ticks:
            taken.append(self.outliers.admit(tick, self.last, self.minutes, self.facts, tick.time_ms))
            if taken[-1]:
                self.last = tick
        return taken


def prices(*mids: float) -> list[Tick]:
    return [at(mid, n) for n, mid in enumerate(mids)]


def test_price_that_nobody_can_have_meant_is_refused() -> None:
    assert Door().take(*prices(10.0, 1_000_000.0, 10.0)) == [True, False, True]


@pytest.mark.parametrize(("mid", "taken"), [(10.049, True), (10.051, False), (9.951, True), (9.949, False)])
def test_half_a_percent_is_believed(mid: float, taken: bool) -> None:
    assert Door().take(*prices(10.0, mid)) == [True, taken]


@pytest.mark.parametrize(("mid", "taken"), [(10.99, True), (11.02, False)])
def test_fifty_median_spreads_are_believed(mid: float, taken: bool) -> None:
    door = Door()
    door.take(*(at(10.0, n, spread=0.02) for n in range(9)), at(10.0, 10, spread=5.0))

    assert door.take(at(mid, 11, spread=0.02)) == [taken]


@pytest.mark.parametrize(("mid", "taken"), [(11.49, True), (11.51, False)])
def test_fifteen_mean_ranges_of_a_minute_are_believed(mid: float, taken: bool) -> None:
    ranges = [0.05, 0.15]
    minutes = [PriceBar(0, 10.0, 10.0 + each, 10.0, 10.0, 1.0, 10.0, 10.0) for each in ranges]

    assert Door(minutes=minutes).take(*prices(10.0, mid)) == [True, taken]


def trade(price: float, after_ms: int, mid: float = 10.0) -> Tick:
    return msgspec.structs.replace(at(mid, after_ms), side=1, price=price)


@pytest.mark.parametrize(("price", "taken"), [(10.049, True), (10.051, False), (9.949, False), (1e6, False)])
def test_price_of_a_trade_is_held_to_the_quote_that_it_came_with(price: float, taken: bool) -> None:
    assert Door().take(at(10.0), trade(price, 1)) == [True, taken]


def test_trades_far_from_their_quotes_confirm_nothing() -> None:
    assert Door().take(at(10.0), *(trade(20.0, n) for n in range(1, 6)), at(10.0, 9)) == [
        True,
        *[False] * 5,
        True,
    ]


def test_trade_goes_with_its_quote_to_a_new_level() -> None:
    door = Door()

    assert door.take(at(10.0), *(trade(20.0, n, mid=20.0) for n in range(1, 4))) == [True, False, False, True]
    assert door.outliers.last_price == 20.0


def test_three_that_agree_are_a_new_level_and_the_refused_stay_refused() -> None:
    assert Door().take(*prices(10.0, 20.0, 20.01, 20.02, 20.0)) == [True, False, False, True, True]


def test_those_that_do_not_agree_confirm_nothing() -> None:
    assert Door().take(*prices(10.0, 20.0, 30.0, 20.0, 30.0)) == [True] + [False] * 4


def test_good_price_between_them_ends_their_agreement() -> None:
    assert Door().take(*prices(10.0, 20.0, 20.0, 10.0, 20.0, 20.0)) == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]


def test_first_tick_of_all_is_taken() -> None:
    assert Door().take(at(1_000_000.0)) == [True]


@pytest.mark.parametrize(("after_s", "taken"), [(60, False), (60.001, True)])
def test_first_tick_after_a_stale_quote_is_taken(after_s: float, taken: bool) -> None:
    assert Door().take(at(10.0), at(20.0, round(after_s * 1000))) == [True, taken]


def test_first_tick_after_the_opening_is_taken() -> None:
    door, opens_ms = Door(hours="metals"), ms("2026-11-18T23:00") - NOON_MS
    door.facts = make_facts("X", "metals", outlier_percent=0.5, stale_after_s=86_400)
    before = at(10.0, opens_ms - 60 * MINUTE_MS - 1)

    assert door.take(before, at(20.0, opens_ms), at(40.0, opens_ms + 1)) == [True, True, False]


def test_nought_switches_it_off() -> None:
    assert Door(percent=0.0).take(*prices(10.0, 1_000_000.0, 0.01)) == [True] * 3


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40))
def test_no_price_is_taken_far_from_the_last_but_by_its_third_confirmation(mids: list[float]) -> None:
    ticks = prices(*mids)
    taken = Door(minutes=[]).take(*ticks)

    kept = [n for n, is_taken in enumerate(taken) if is_taken]
    for before, n in zip(kept, kept[1:], strict=False):
        is_near = abs(mids[n] - mids[before]) <= mids[before] * 0.005
        assert is_near or n - before >= AGREEING


@pytest.mark.django_db
def test_engine_refuses_counts_and_tells_an_outlier() -> None:
    make_instrument("EURUSD", outlier_percent="0.5", calendar=make_calendar())
    engine = Engine(Prices("bid"))
    ticks = [Tick("EURUSD", mid, mid, NOON_MS + n, 1.0) for n, mid in enumerate((10.0, 1e6, 10.001))]

    assert engine.take("push", ticks, NOON_MS + 5) == [None, "outlier", None]

    (told,) = status_of(engine, NOON_MS, "", "").instruments
    assert (told.outliers, told.outlier_price, told.outlier_ms) == (1, 1e6, NOON_MS + 1)
    assert engine.feed_state("push").refused == {"outlier": 1}


@pytest.mark.django_db
def test_feed_that_has_no_say_confirms_no_price() -> None:
    make_instrument("EURUSD", outlier_percent="0.5", source="push:desk", fallback="push:other")
    engine = Engine(Prices("bid"))
    far = [Tick("EURUSD", 20.0, 20.0, NOON_MS + n, 1.0) for n in range(1, 4)]
    engine.take("push:desk", [Tick("EURUSD", 10.0, 10.0, NOON_MS, 1.0)], NOON_MS)

    assert engine.take("push:other", far, NOON_MS + 5) == ["standby"] * 3
    assert engine.take("push:desk", [Tick("EURUSD", 20.0, 20.0, NOON_MS + 5, 1.0)], NOON_MS + 5) == [
        "outlier"
    ]
