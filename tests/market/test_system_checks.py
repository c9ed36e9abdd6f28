"""Settings of the market that make no sense are told before anything starts."""

from __future__ import annotations

import pytest
from django.core.checks import CheckMessage
from pytest_django.fixtures import Settings

from market.checks import check_candle_days, check_demo_rate

SHIPPED = {"1m": 400, "5m": 800, "15m": 1600, "1h": 0, "4h": 0, "1d": 0}


def told(messages: list[CheckMessage]) -> list[str]:
    return [f"{message.id} {message.msg}" for message in messages]


def kept(settings: Settings, **days: int) -> list[str]:
    settings.CANDLE_DAYS = SHIPPED | {name.removeprefix("d"): number for name, number in days.items()}
    return told(check_candle_days())


@pytest.mark.parametrize("rate", [0, 1, 50_000])
def test_demo_makes_up_to_fifty_thousand_ticks_a_second(settings: Settings, rate: int) -> None:
    settings.DEMO_RATE = rate

    assert check_demo_rate() == []


@pytest.mark.parametrize("rate", [-1, 50_001])
def test_rate_beyond_what_the_demo_makes_is_an_error(settings: Settings, rate: int) -> None:
    settings.DEMO_RATE = rate

    assert told(check_demo_rate()) == [
        f"market.E002 DEMO_RATE is {rate}: the demo makes up to 50,000 ticks a second."
    ]


def test_days_that_are_shipped_are_sound(settings: Settings) -> None:
    assert kept(settings) == []


def test_fewer_than_no_days_is_an_error(settings: Settings) -> None:
    assert kept(settings, d1m=-1) == [
        "market.E001 CANDLE_DAYS_1M is -1: no candle is kept for fewer than no days."
    ]


@pytest.mark.parametrize("days", [{"d5m": 399}, {"d1m": 0}])
def test_coarser_candles_are_not_to_go_before_finer_ones(settings: Settings, days: dict[str, int]) -> None:
    assert kept(settings, **days) == [
        "market.W001 5m candles are dropped before the 1m candles that they are made of."
    ]


def test_days_that_cut_nothing_are_told(settings: Settings) -> None:
    assert kept(settings, d1d=499)[-1] == (
        "market.W002 CANDLE_DAYS_1D=499 cannot cut the last 500 candles: they are always kept."
    )
