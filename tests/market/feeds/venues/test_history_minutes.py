from __future__ import annotations

from math import inf, nan

import pytest
from msgspec.structs import replace

from core.times import MINUTE_MS
from market.engine.feeds.venues.venue_history import LONGEST_MS, sound_minutes, whole_minutes
from market.prices.candles import PriceBar

START_MS = 1_763_467_200_000
END_MS = START_MS + 10 * MINUTE_MS
BAR = PriceBar(START_MS, 1.2, 1.4, 1.1, 1.3, 7.0, ask_high=1.41, ask_low=1.11)


def kept(*bars: PriceBar) -> list[int]:
    minutes, refused = sound_minutes(bars, START_MS, END_MS)
    assert refused + len(minutes) == len(bars)
    return [minute.opened_ms for minute in minutes]


def test_sound_bar_is_kept() -> None:
    assert kept(BAR) == [START_MS]


@pytest.mark.parametrize(
    "fault",
    [
        {"low": 1.25},
        {"low": 1.35},
        {"high": 1.25},
        {"high": 1.15},
        {"low": 0.0},
        {"low": -1.0},
        {"open": nan},
        {"close": nan},
        {"high": nan},
        {"low": nan},
        {"high": inf, "ask_high": inf},
        {"ask_high": nan},
        {"ask_high": 1.39},
        {"ask_low": 1.09},
        {"ask_low": 1.42},
        {"ask_low": nan},
        {"ask_high": 1e10},
        {"volume": nan},
        {"volume": inf},
        {"volume": -1.0},
        {"volume": 1e12},
    ],
)
def test_bar_that_no_market_makes_is_left_out_and_counted(fault: dict[str, float]) -> None:
    assert kept(replace(BAR, **fault)) == []


@pytest.mark.parametrize(
    "opened_ms",
    [START_MS + 1, START_MS - MINUTE_MS, END_MS + MINUTE_MS, START_MS + MINUTE_MS // 2, 0, -MINUTE_MS],
)
def test_bar_of_another_time_is_left_out_and_counted(opened_ms: int) -> None:
    assert kept(BAR.opened_at(opened_ms)) == []


def test_second_bar_of_a_minute_is_left_out() -> None:
    assert kept(BAR, BAR) == [START_MS]


def test_bar_out_of_order_is_left_out() -> None:
    assert kept(BAR.opened_at(START_MS + MINUTE_MS), BAR) == [START_MS + MINUTE_MS]


def test_running_minute_is_left_out_and_no_fault() -> None:
    assert sound_minutes([BAR.opened_at(END_MS)], START_MS, END_MS) == ([], 0)


def test_minutes_asked_for_are_whole_and_ended() -> None:
    assert whole_minutes(START_MS + 1, END_MS + 59_999) == (START_MS + MINUTE_MS, END_MS)


def test_of_a_long_gap_the_last_three_days_are_asked_for() -> None:
    assert whole_minutes(0, END_MS) == (END_MS - LONGEST_MS, END_MS)
