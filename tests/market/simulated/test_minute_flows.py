"""The order flow that is made up for the demo's past adds up like one that was summed from ticks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from core.times import MINUTE_MS
from market.prices.candles import DAY_MS, PriceBar
from market.prices.order_flow import UNITS, MinuteFlow
from market.simulated.minute_flows import minute_flows
from tests.market.ticking import ms

pytestmark = pytest.mark.served

MIDNIGHT_MS = ms("2026-11-17T00:00")


def bars(count: int, volume: float, start_ms: int = MIDNIGHT_MS) -> list[PriceBar]:
    return [bar(start_ms + n * MINUTE_MS, 1.0002 if n % 2 else 0.9999, volume) for n in range(count)]


def bar(opened_ms: int, close: float, volume: float) -> PriceBar:
    return PriceBar(opened_ms, 1.0, 1.0004, 0.9998, close, volume, 1.0005, 0.9999)


@pytest.mark.parametrize("volume", [57.0, 3.215, 0.0])
def test_both_sides_come_to_the_volume_of_the_candle(volume: float) -> None:
    for flow in minute_flows(bars(500, volume), 1, "EURUSD"):
        assert round(flow.bid_volume * UNITS) + round(flow.ask_volume * UNITS) == round(volume * UNITS)
        assert flow.bid_volume >= 0
        assert flow.ask_volume >= 0


def test_ticks_stay_whole() -> None:
    assert all(flow.ask_volume.is_integer() for flow in minute_flows(bars(100, 57.0), 1, "EURUSD"))


def test_running_sum_begins_anew_at_midnight() -> None:
    flows = list(minute_flows(bars(40, 57.0, MIDNIGHT_MS + DAY_MS - 20 * MINUTE_MS), 1, "EURUSD"))

    for before, flow in pairwise(flows):
        start = 0.0 if flow.opened_ms == MIDNIGHT_MS + DAY_MS else before.cumulative_delta
        assert flow.cumulative_delta == pytest.approx(start + flow.delta)


def test_buyers_are_ahead_where_the_price_rose() -> None:
    made = list(minute_flows(bars(2_000, 57.0), 1, "EURUSD"))

    assert total(made[1::2]) > 0 > total(made[::2])


def test_it_is_the_same_whenever_it_is_made() -> None:
    assert list(minute_flows(bars(50, 3.2), 7, "BTCUSD")) == list(minute_flows(bars(50, 3.2), 7, "BTCUSD"))


def total(flows: list[MinuteFlow]) -> float:
    return sum(flow.delta for flow in flows)
