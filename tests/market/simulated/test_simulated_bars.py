from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.simulated.profiles import PROFILES

from .simulation import (
    HOUR_MS,
    START_MS,
    make_bars,
    make_market,
    ticks_by_bar,
)

pytestmark = pytest.mark.served


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1_200), min_size=3, max_size=3), st.sampled_from([1_000, MINUTE_MS, HOUR_MS]))
def test_bars_of_a_span_are_those_of_its_parts(chosen: list[int], step_ms: int) -> None:
    start, middle, end = (START_MS + steps * step_ms for steps in sorted(chosen))
    market = make_market()
    parts = [*market.bars_between(start, middle, step_ms), *market.bars_between(middle, end, step_ms)]
    assert parts == list(make_market().bars_between(start, end, step_ms))


@pytest.mark.parametrize("symbol", PROFILES)
def test_bars_hold_their_open_and_close_and_an_ask_above(symbol: str) -> None:
    for _, opened, high, low, closed, volume, ask_high, ask_low in make_bars(symbol):
        assert low <= min(opened, closed) <= max(opened, closed) <= high
        assert ask_high > high
        assert ask_low > low
        assert ask_low <= ask_high
        assert volume > 0


def test_bars_open_at_each_step_within_the_span() -> None:
    bars = make_market().bars_between(START_MS + 1, START_MS + HOUR_MS + 1, MINUTE_MS)
    assert [bar[0] for bar in bars] == list(range(START_MS + MINUTE_MS, START_MS + HOUR_MS + 1, MINUTE_MS))


@pytest.mark.parametrize("symbol", PROFILES)
def test_bars_open_where_the_last_one_closed(symbol: str) -> None:
    jumps = [abs(later[1] - earlier[4]) for earlier, later in pairwise(make_bars(symbol))]
    assert max(jumps) <= 2 * PROFILES[symbol].spread


@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "XAUUSD", "AAPL"])
def test_bars_close_where_the_ticks_of_the_minute_do(symbol: str) -> None:
    bars = make_bars(symbol, HOUR_MS // 2)
    misses = [
        abs(bar[4] - ticks[-1].bid) for bar, ticks in zip(bars, ticks_by_bar(symbol, bars), strict=True)
    ]
    assert fmean(misses) < PROFILES[symbol].spread
    assert max(misses) < 5 * PROFILES[symbol].spread


@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "XAUUSD", "AAPL"])
def test_bar_ranges_are_those_of_the_ticks(symbol: str) -> None:
    bars = make_bars(symbol, HOUR_MS // 2)
    minutes = [[tick.bid for tick in ticks] for ticks in ticks_by_bar(symbol, bars)]
    widths = [max(bids) - min(bids) for bids in minutes]
    assert fmean(bar[2] - bar[3] for bar in bars) == pytest.approx(fmean(widths), rel=0.1)
    for bar, bids, width in zip(bars, minutes, widths, strict=True):
        assert bar[2] == pytest.approx(max(bids), abs=width / 2 + 4 * PROFILES[symbol].spread)
        assert bar[3] == pytest.approx(min(bids), abs=width / 2 + 4 * PROFILES[symbol].spread)


def test_step_that_cannot_be_sampled_evenly_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 4"):
        next(make_market().bars_between(START_MS, START_MS + HOUR_MS, 1_001))
