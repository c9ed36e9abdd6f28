"""The simulated market: its ticks, trades and bars, at any rate, and the order flow of its past."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, median, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.prices.candles import PriceBar
from market.prices.order_flow import UNITS
from market.prices.records import Tick
from market.simulated.profiles import PROFILES, profile_for
from market.simulated.simulated_market import TRADE_SHARE, RapidMarket, SimulatedMarket, minute_flows
from tests.market.ticking import ms

from .simulation import (
    DAY_MS,
    HOUR_MS,
    START_MS,
    gaps_of,
    make_bars,
    make_market,
    make_ticks,
    points_of,
    ticks_by_bar,
)

pytestmark = pytest.mark.served
moments = st.integers(START_MS, START_MS + 20_000)


def make_rapid(
    rate: float = 1_000, symbol: str = "EURUSD", seed: int = 7, volume_kind: str = "ticks"
) -> RapidMarket:
    profile = PROFILES[symbol]
    return RapidMarket(seed, symbol, profile.digits, profile, volume_kind, rate)


def moves_of(ticks: list[Tick]) -> list[float]:
    """In points of EURUSD."""
    return [points_of(later.bid - earlier.bid, "EURUSD") for earlier, later in pairwise(ticks)]


def test_prices_and_trades_do_not_change_between_versions() -> None:
    quotes = [(tick.bid, tick.ask, tick.time_ms - START_MS) for tick in make_ticks(span_ms=5_000)[:2]]
    assert quotes == [(1.14831, 1.14835, 697), (1.14832, 1.14835, 2294)]
    trades = [(tick.side, tick.price, tick.volume) for tick in make_ticks("BTCUSD", 1_000, "traded")]
    assert trades == [
        *((1, 91180.45, 0.009), (1, 91179.73, 0.007), (-1, 91175.67, 0.008), (-1, 91174.73, 0.008)),
        *((-1, 91173.60, 0.036), (-1, 91172.66, 0.036), (-1, 91171.42, 0.005), (0, None, 0.0)),
    ]


def test_another_seed_makes_another_market() -> None:
    other, own = (make_market(seed=seed).ticks_between(START_MS, START_MS + MINUTE_MS) for seed in (8, 7))
    assert {tick.time_ms for tick in other} != {tick.time_ms for tick in own}
    assert fmean(tick.bid for tick in other) != fmean(tick.bid for tick in own)
    span = START_MS, START_MS + 100
    assert make_rapid(seed=8).ticks_between(*span) != make_rapid().ticks_between(*span)


def test_what_was_asked_before_changes_nothing() -> None:
    used = make_market()
    used.ticks_between(START_MS - HOUR_MS, START_MS)
    used.quote_at(START_MS + DAY_MS)
    assert used.ticks_between(START_MS, START_MS + MINUTE_MS) == make_ticks(span_ms=MINUTE_MS)


@settings(max_examples=60)
@given(
    st.sampled_from(["EURUSD", "BTCUSD", "UK100"]),
    st.sampled_from(["ticks", "traded"]),
    st.tuples(moments, moments, moments),
)
def test_ticks_of_a_span_are_those_of_its_parts(
    symbol: str, volume_kind: str, chosen: tuple[int, int, int]
) -> None:
    start, middle, end = sorted(chosen)
    market = make_market(symbol, volume_kind=volume_kind)
    parts = market.ticks_between(start, middle) + market.ticks_between(middle, end)
    assert parts == make_market(symbol, volume_kind=volume_kind).ticks_between(start, end)
    assert all(start <= tick.time_ms < end for tick in parts)


@pytest.mark.parametrize("symbol", PROFILES)
def test_quotes_are_rounded_never_crossed_in_order_and_come_because_they_changed(symbol: str) -> None:
    ticks, digits = make_ticks(symbol, 10 * MINUTE_MS), PROFILES[symbol].digits
    assert min(gaps_of(ticks)) > 0
    assert min(round(points_of(tick.ask - tick.bid, symbol)) for tick in ticks) >= 1
    assert all(round(price, digits) == price for tick in ticks for price in (tick.bid, tick.ask))
    quotes = [(tick.bid, tick.ask) for tick in ticks]
    assert sum(earlier == later for earlier, later in pairwise(quotes)) < 0.1 * len(quotes)


def test_ticks_of_eurusd_are_as_measured() -> None:
    ticks, gaps = make_ticks(), gaps_of(make_ticks())
    spreads = sorted(round(points_of(tick.ask - tick.bid, "EURUSD")) for tick in ticks)
    assert [spreads[len(spreads) * share // 100] for share in (5, 50, 95)] == [1, 3, 4]
    assert 6 <= spreads[-1] <= 9
    assert 0.7 < len(ticks) / 3600 < 3
    assert pstdev(gaps) / fmean(gaps) > 1
    assert median(gaps) < fmean(gaps) / 2
    assert 0.6 < pstdev(moves_of(ticks)) < 2.4


@pytest.mark.parametrize("symbol", ["BTCUSD", "ETHUSD", "TEST"])
def test_crypto_ticks_at_least_four_times_in_every_second(symbol: str) -> None:
    counts = [0] * 600
    for tick in make_ticks(symbol, 600_000):
        counts[(tick.time_ms - START_MS) // 1000] += 1
    assert min(counts) >= 4
    assert 4.5 < fmean(counts) < 8


@pytest.mark.parametrize("symbol", PROFILES)
def test_trades_are_at_the_quote_and_their_sizes_positive_and_mostly_small(symbol: str) -> None:
    trades = [tick for tick in make_ticks(symbol, 10 * MINUTE_MS, "traded") if tick.side]
    assert all(tick.price == (tick.ask if tick.side > 0 else tick.bid) for tick in trades)
    sizes = [tick.volume for tick in trades]
    assert min(sizes) > 0
    assert median(sizes) < fmean(sizes)
    assert max(sizes) > 3 * median(sizes)
    # Shares trade whole, and coins in parts.
    if symbol == "AAPL":
        assert all(size.is_integer() for size in sizes)
    elif symbol == "BTCUSD":
        assert all(round(size, 3) == size for size in sizes)


def test_quote_is_the_last_tick_at_or_before_the_moment_and_a_tick_at_the_end_is_of_the_next_span() -> None:
    market, ticks = make_market(), make_ticks(span_ms=MINUTE_MS)
    for tick in ticks:
        assert tick not in market.ticks_between(START_MS, tick.time_ms)
        assert market.ticks_between(tick.time_ms, tick.time_ms + 1) == [tick]
    for earlier, later in pairwise(ticks):
        assert market.quote_at(earlier.time_ms) == earlier
        assert market.quote_at(later.time_ms - 1) == earlier


@pytest.mark.parametrize(
    ("digits", "pip_size", "kind"),
    [(5, 0.0001, "forex"), (3, 0.01, "forex"), (2, 0.01, "stock"), (6, 0.0001, "crypto"), (1, 1.0, "index")],
)
def test_unknown_instrument_gets_a_market_that_fits_its_digits(
    digits: int, pip_size: float, kind: str
) -> None:
    market = SimulatedMarket(7, "NEW", digits, profile_for("NEW", digits, pip_size, kind), "traded")
    ticks = market.ticks_between(START_MS, START_MS + HOUR_MS)
    assert len({tick.bid for tick in ticks}) > 50
    assert all(0 < tick.ask - tick.bid < tick.bid / 100 for tick in ticks)


def test_crosses_start_at_the_product_of_their_legs() -> None:
    base = {symbol: profile.base_price for symbol, profile in PROFILES.items()}
    assert base["EURGBP"] == pytest.approx(base["EURUSD"] / base["GBPUSD"], rel=0.001)
    assert base["EURJPY"] == pytest.approx(base["EURUSD"] * base["USDJPY"], rel=0.001)


def test_some_quotes_change_without_a_trade_and_trades_leave_the_quotes_as_they_are() -> None:
    ticks, counted = make_ticks("BTCUSD", 10 * MINUTE_MS, "traded"), make_ticks("BTCUSD", 10 * MINUTE_MS)
    quotes = [tick for tick in ticks if not tick.side]
    assert len(quotes) / len(ticks) == pytest.approx(1 - TRADE_SHARE, abs=0.05)
    assert {(tick.volume, tick.price) for tick in quotes} == {(0.0, None)}
    # Where ticks are the volume nobody knows who took, and each counts one.
    assert {(tick.volume, tick.side, tick.price) for tick in counted} == {(1.0, 0, None)}
    assert [(t.time_ms, t.bid, t.ask) for t in ticks] == [(t.time_ms, t.bid, t.ask) for t in counted]


@pytest.mark.parametrize("rate", [0.5, 3, 20, 1_000, 20_000])
def test_rate_is_exact_over_time(rate: float) -> None:
    made = make_rapid(rate).ticks_between(START_MS, START_MS + 10_000)

    assert len(made) == pytest.approx(10 * rate, abs=1)


@settings(max_examples=40)
@given(
    st.lists(st.integers(START_MS, START_MS + 600), min_size=3, max_size=3), st.sampled_from([7, 150, 3_000])
)
def test_rapid_ticks_of_a_span_are_those_of_its_parts(chosen: list[int], rate: int) -> None:
    start, middle, end = sorted(chosen)
    market = make_rapid(rate)
    parts = market.ticks_between(start, middle) + market.ticks_between(middle, end)
    assert parts == make_rapid(rate).ticks_between(start, end)
    assert all(start <= tick.time_ms < end for tick in parts)


@pytest.mark.parametrize("rate", [100, 20_000])
def test_no_rapid_tick_repeats_the_one_before(rate: int) -> None:
    """The engine would drop it as a duplicate."""
    for earlier, later in pairwise(make_rapid(rate).ticks_between(START_MS, START_MS + 1_000)):
        assert earlier != later
        assert earlier.time_ms <= later.time_ms


@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "US500"])
def test_rapid_prices_are_those_of_the_ordinary_market(symbol: str) -> None:
    """So that its stored candles go on without a jump."""
    market, spread = make_market(symbol), PROFILES[symbol].spread
    for tick in make_rapid(50, symbol).ticks_between(START_MS, START_MS + 20_000):
        assert abs(tick.bid - market.quote_at(tick.time_ms).bid) < 4 * spread + 0.0002 * tick.bid


def test_rapid_tick_moves_about_a_point() -> None:
    made = make_rapid().ticks_between(START_MS, START_MS + 2_000)
    assert 0.6 < pstdev(moves_of(made)) < 2.4
    assert 2 < points_of(fmean(tick.ask - tick.bid for tick in made), "EURUSD") < 4


def test_rapid_trades_have_sides_and_prices_of_the_quote() -> None:
    made = make_rapid(symbol="BTCUSD", volume_kind="traded").ticks_between(START_MS, START_MS + 2_000)
    assert {tick.side for tick in made} == {-1, 0, 1}
    for tick in made:
        assert tick.price == {1: tick.ask, -1: tick.bid, 0: None}[tick.side]
        assert (tick.volume > 0) == (tick.side != 0)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1_200), min_size=3, max_size=3), st.sampled_from([1_000, MINUTE_MS, HOUR_MS]))
def test_bars_of_a_span_are_those_of_its_parts(chosen: list[int], step_ms: int) -> None:
    start, middle, end = (START_MS + steps * step_ms for steps in sorted(chosen))
    market = make_market()
    parts = [*market.bars_between(start, middle, step_ms), *market.bars_between(middle, end, step_ms)]
    assert parts == list(make_market().bars_between(start, end, step_ms))


@pytest.mark.parametrize("symbol", PROFILES)
def test_bars_hold_their_open_and_close_below_an_ask_and_open_where_the_last_one_closed(symbol: str) -> None:
    bars = make_bars(symbol)
    for _, opened, high, low, closed, volume, ask_high, ask_low in bars:
        assert low <= min(opened, closed) <= max(opened, closed) <= high < ask_high
        assert low < ask_low <= ask_high
        assert volume > 0
    jumps = [abs(later[1] - earlier[4]) for earlier, later in pairwise(bars)]
    assert max(jumps) <= 2 * PROFILES[symbol].spread


def test_bars_open_at_each_step_within_the_span() -> None:
    bars = make_market().bars_between(START_MS + 1, START_MS + HOUR_MS + 1, MINUTE_MS)
    assert [bar[0] for bar in bars] == list(range(START_MS + MINUTE_MS, START_MS + HOUR_MS + 1, MINUTE_MS))
    # A step that cannot be sampled evenly is refused.
    with pytest.raises(ValueError, match="multiple of 4"):
        next(make_market().bars_between(START_MS, START_MS + HOUR_MS, 1_001))


@pytest.mark.parametrize("symbol", ["EURUSD", "BTCUSD", "XAUUSD", "AAPL"])
def test_bars_have_the_close_and_the_range_of_the_ticks_of_their_minute(symbol: str) -> None:
    bars, spread = make_bars(symbol, HOUR_MS // 2), PROFILES[symbol].spread
    minutes = [[tick.bid for tick in ticks] for ticks in ticks_by_bar(symbol, bars)]
    misses = [abs(bar[4] - bids[-1]) for bar, bids in zip(bars, minutes, strict=True)]
    widths = [max(bids) - min(bids) for bids in minutes]
    assert fmean(misses) < spread
    assert max(misses) < 5 * spread
    assert fmean(bar[2] - bar[3] for bar in bars) == pytest.approx(fmean(widths), rel=0.1)
    for bar, bids, width in zip(bars, minutes, widths, strict=True):
        assert bar[2] == pytest.approx(max(bids), abs=width / 2 + 4 * spread)
        assert bar[3] == pytest.approx(min(bids), abs=width / 2 + 4 * spread)


MIDNIGHT_MS = ms("2026-11-17T00:00")


def closes(count: int, volume: float, start_ms: int = MIDNIGHT_MS) -> list[PriceBar]:
    """Minutes that rise and fall by turns."""
    return [
        PriceBar(start_ms + n * MINUTE_MS, 1.0, 1.0004, 0.9998, close, volume, 1.0005, 0.9999)
        for n in range(count)
        for close in (1.0002 if n % 2 else 0.9999,)
    ]


@pytest.mark.parametrize("volume", [57.0, 3.215, 0.0])
def test_order_flow_of_the_past_comes_to_the_volume_of_its_candles(volume: float) -> None:
    for flow in minute_flows(closes(500, volume), 1, "EURUSD"):
        assert round(flow.bid_volume * UNITS) + round(flow.ask_volume * UNITS) == round(volume * UNITS)
        assert min(flow.bid_volume, flow.ask_volume) >= 0
        # Ticks stay whole.
        assert not volume.is_integer() or flow.ask_volume.is_integer()


def test_running_sum_of_the_past_begins_anew_at_midnight() -> None:
    next_day_ms = MIDNIGHT_MS + DAY_MS
    flows = list(minute_flows(closes(40, 57.0, next_day_ms - 20 * MINUTE_MS), 1, "EURUSD"))
    for before, flow in pairwise(flows):
        start = 0.0 if flow.opened_ms == next_day_ms else before.cumulative_delta
        assert flow.cumulative_delta == pytest.approx(start + flow.delta)


def test_buyers_are_ahead_where_the_price_rose_whenever_it_is_made() -> None:
    made, again = (list(minute_flows(closes(2_000, 57.0), 1, "EURUSD")) for _ in range(2))
    assert sum(flow.delta for flow in made[1::2]) > 0 > sum(flow.delta for flow in made[::2])
    assert made == again
