"""The last 24 hours, whatever is missing, comes again or comes late."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.prices.candles import PriceBar
from market.prices.history import DayStatistics, RollingDay
from tests.market.ticking import NOON_MS, aggregate, copy

DAY_MS = 1_440 * MINUTE_MS


def make_minute(number: int, price: float = 100.0, volume: float = 1.0) -> PriceBar:
    """The minute that opened so many after noon."""
    opened_ms = NOON_MS + number * MINUTE_MS
    return PriceBar(opened_ms, price, price + 0.5, price - 0.5, price + 0.25, volume, price + 1, price)


def make_day(*minutes: PriceBar) -> RollingDay:
    day = RollingDay(2)
    for minute in minutes:
        day.add(minute)
    return day


def at(minute: int, ms: int = 0) -> int:
    return NOON_MS + minute * MINUTE_MS + ms


def known(day: RollingDay, now_ms: int, forming: PriceBar | None = None) -> DayStatistics:
    statistics = day.statistics(now_ms, forming)
    assert statistics is not None
    return statistics


def test_day_is_told_in_seven_figures_and_nothing_of_one_without_minutes() -> None:
    day = make_day(make_minute(0, 100.0), make_minute(1, 98.0), make_minute(2, 103.0))
    assert known(day, at(3)) == DayStatistics(100.0, 103.5, 97.5, 103.25, 3.25, 3.25, 3.0)
    assert RollingDay(2).statistics(NOON_MS) is None


@pytest.mark.parametrize(("now_ms", "is_there"), [(at(1_440, 59_999), True), (at(1_441), False)])
def test_minute_is_part_of_the_1440_before_this_one(now_ms: int, is_there: bool) -> None:
    assert (make_day(make_minute(0)).statistics(now_ms) is not None) == is_there


def test_forming_minute_counts_if_it_is_given_and_is_only_looked_at() -> None:
    day, forming = make_day(make_minute(0, 100.0)), make_minute(1, 90.0)
    for _ in range(2):
        told = known(day, at(1, 500), forming)
        assert (told.open, told.high, told.low, told.last, told.volume) == (100.0, 100.5, 89.5, 90.25, 2.0)
    assert forming == make_minute(1, 90.0)


def test_forming_minute_may_be_all_there_is_but_is_not_of_the_day_if_it_forms_since_last_week() -> None:
    assert known(RollingDay(2), at(1), make_minute(1)).open == 100.0
    assert RollingDay(2).statistics(at(3_000), make_minute(0)) is None


minutes = st.tuples(st.integers(0, 3_000), st.integers(1, 9), st.integers(0, 10**9))


@settings(max_examples=80)
@given(st.lists(minutes, min_size=1, max_size=60), st.integers(0, 1_500))
def test_any_order_gives_the_aggregate_of_what_is_left(made: list[tuple[int, int, int]], wait: int) -> None:
    day, rows = RollingDay(2), dict[int, PriceBar]()
    newest = max(number for number, _, _ in made)
    for number, price, volume in made:
        rows[number] = make_minute(number, price * 10.0, volume / 1e8)
        day.add(copy(rows[number]))
        # Asking in between changes nothing.
        day.statistics(at(number))

    told = day.statistics(at(newest + 1 + wait))

    left = [rows[number] for number in sorted(rows) if number > newest + wait - 1_440]
    if not left:
        assert told is None
        return
    (whole,) = aggregate([minute.opened_at(index) for index, minute in enumerate(left)], DAY_MS)
    assert told is not None
    assert (told.open, told.high, told.low, told.last) == (whole.open, whole.high, whole.low, whole.close)
    assert told.volume == whole.volume
    assert told.change == round(whole.close - whole.open, 2)
