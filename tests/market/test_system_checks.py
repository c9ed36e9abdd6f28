"""Settings of the market that make no sense are told before anything starts."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from market.checks import check_candle_days, check_demo_rate

SHIPPED = {"1m": 400, "5m": 800, "15m": 1600, "1h": 0, "4h": 0, "1d": 0}


DROPPED_FIRST = "market.W001 {} candles are dropped before the {} candles that they are made of."


@pytest.mark.parametrize("rate", [-1, 0, 1, 50_000, 50_001])
def test_demo_makes_up_to_fifty_thousand_ticks_a_second(settings: Settings, rate: int) -> None:
    settings.DEMO_RATE = rate
    refusal = f"market.E002 DEMO_RATE is {rate}: the demo makes up to 50,000 ticks a second."
    told = [f"{message.id} {message.msg}" for message in check_demo_rate()]
    assert told == ([] if 0 <= rate <= 50_000 else [refusal])


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ({}, []),
        ({"1m": -1}, ["market.E001 CANDLE_DAYS_1M is -1: no candle is kept for fewer than no days."]),
        ({"5m": 399}, [DROPPED_FIRST.format("5m", "1m")]),
        ({"1m": 0}, [DROPPED_FIRST.format("5m", "1m")]),
        (
            {"1d": 499},
            [
                DROPPED_FIRST.format("1d", "4h"),
                "market.W002 CANDLE_DAYS_1D=499 cannot cut the last 500 candles: they are always kept.",
            ],
        ),
    ],
)
def test_days_that_make_no_sense_are_told(settings: Settings, days: dict[str, int], told: list[str]) -> None:
    settings.CANDLE_DAYS = SHIPPED | days
    assert [f"{message.id} {message.msg}" for message in check_candle_days()] == told
