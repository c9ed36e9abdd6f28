from itertools import pairwise
from statistics import fmean, median, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.simulated.profiles import PROFILES, profile_for
from market.simulated.simulated_market import SimulatedMarket

from .simulation import (
    DAY_MS,
    HOUR_MS,
    START_MS,
    gaps_of,
    make_market,
    make_ticks,
    points_of,
)

pytestmark = pytest.mark.served

moments = st.integers(START_MS, START_MS + 20_000)


def test_two_markets_with_one_seed_make_the_same_ticks() -> None:
    assert make_ticks(span_ms=MINUTE_MS) == make_ticks(span_ms=MINUTE_MS)


def test_prices_do_not_change_between_versions() -> None:
    made = [(tick.bid, tick.ask, tick.time_ms - START_MS) for tick in make_ticks(span_ms=5_000)[:2]]
    assert made == [(1.14831, 1.14835, 697), (1.14832, 1.14835, 2294)]


def test_another_seed_makes_another_market() -> None:
    other = make_market(seed=8).ticks_between(START_MS, START_MS + MINUTE_MS)
    assert {tick.time_ms for tick in other} != {tick.time_ms for tick in make_ticks(span_ms=MINUTE_MS)}
    assert fmean(tick.bid for tick in other) != fmean(tick.bid for tick in make_ticks(span_ms=MINUTE_MS))


def test_what_was_asked_before_changes_nothing() -> None:
    used = make_market()
    used.ticks_between(START_MS - HOUR_MS, START_MS)
    used.quote_at(START_MS + DAY_MS)
    assert used.ticks_between(START_MS, START_MS + MINUTE_MS) == make_ticks(span_ms=MINUTE_MS)


@settings(max_examples=60)
@given(st.sampled_from(["EURUSD", "BTCUSD", "UK100"]), st.lists(moments, min_size=3, max_size=3))
def test_ticks_of_a_span_are_those_of_its_parts(symbol: str, chosen: list[int]) -> None:
    start, middle, end = sorted(chosen)
    market = make_market(symbol)
    parts = market.ticks_between(start, middle) + market.ticks_between(middle, end)
    assert parts == make_market(symbol).ticks_between(start, end)


@given(moments, st.integers(0, 20_000))
@settings(max_examples=40)
def test_ticks_lie_within_the_span_asked(start: int, length: int) -> None:
    ticks = make_market("BTCUSD").ticks_between(start, start + length)
    assert all(start <= tick.time_ms < start + length for tick in ticks)


def test_tick_at_the_end_of_a_span_belongs_to_the_next() -> None:
    market = make_market()
    for tick in make_ticks(span_ms=MINUTE_MS):
        assert tick not in market.ticks_between(START_MS, tick.time_ms)
        assert market.ticks_between(tick.time_ms, tick.time_ms + 1) == [tick]


@pytest.mark.parametrize("symbol", PROFILES)
def test_times_strictly_increase(symbol: str) -> None:
    assert min(gaps_of(make_ticks(symbol, 10 * MINUTE_MS))) > 0


@pytest.mark.parametrize("symbol", PROFILES)
def test_quotes_are_never_crossed_and_never_level(symbol: str) -> None:
    ticks = make_ticks(symbol, 10 * MINUTE_MS)
    assert min(round(points_of(tick.ask - tick.bid, symbol)) for tick in ticks) >= 1


@pytest.mark.parametrize("symbol", PROFILES)
def test_prices_are_rounded_to_the_digits(symbol: str) -> None:
    digits = PROFILES[symbol].digits
    ticks = make_ticks(symbol, 10 * MINUTE_MS)
    assert all(round(price, digits) == price for tick in ticks for price in (tick.bid, tick.ask))


def test_spreads_vary_as_measured_on_eurusd() -> None:
    spreads = sorted(round(points_of(tick.ask - tick.bid, "EURUSD")) for tick in make_ticks())
    assert [spreads[len(spreads) * share // 100] for share in (5, 50, 95)] == [1, 3, 4]
    assert 6 <= spreads[-1] <= 9


@pytest.mark.parametrize("symbol", ["BTCUSD", "ETHUSD", "TEST"])
def test_crypto_ticks_at_least_four_times_in_every_second(symbol: str) -> None:
    counts = [0] * 600
    for tick in make_ticks(symbol, 600_000):
        counts[(tick.time_ms - START_MS) // 1000] += 1
    assert min(counts) >= 4
    assert 4.5 < fmean(counts) < 8


def test_eurusd_ticks_about_once_a_second() -> None:
    assert 0.7 < len(make_ticks()) / 3600 < 3


def test_eurusd_ticks_come_in_bursts() -> None:
    gaps = gaps_of(make_ticks())
    assert pstdev(gaps) / fmean(gaps) > 1
    assert median(gaps) < fmean(gaps) / 2


def test_bid_moves_about_a_point_a_tick() -> None:
    moves = [points_of(later.bid - earlier.bid, "EURUSD") for earlier, later in pairwise(make_ticks())]
    assert 0.6 < pstdev(moves) < 2.4


@pytest.mark.parametrize("symbol", PROFILES)
def test_quotes_come_because_they_changed(symbol: str) -> None:
    quotes = [(tick.bid, tick.ask) for tick in make_ticks(symbol, 10 * MINUTE_MS)]
    assert sum(earlier == later for earlier, later in pairwise(quotes)) < 0.1 * len(quotes)


def test_each_tick_counts_one_where_ticks_are_the_volume() -> None:
    assert {tick.volume for tick in make_ticks("BTCUSD", MINUTE_MS)} == {1.0}


@pytest.mark.parametrize("symbol", PROFILES)
def test_traded_sizes_are_positive_and_mostly_small(symbol: str) -> None:
    sizes = [tick.volume for tick in make_ticks(symbol, 10 * MINUTE_MS, "traded") if tick.side]
    assert min(sizes) > 0
    assert median(sizes) < fmean(sizes)
    assert max(sizes) > 3 * median(sizes)


def test_shares_trade_whole_and_coins_in_parts() -> None:
    assert all(tick.volume.is_integer() for tick in make_ticks("AAPL", 10 * MINUTE_MS, "traded"))
    coins = [tick.volume for tick in make_ticks("BTCUSD", 10 * MINUTE_MS, "traded")]
    assert all(round(size, 3) == size for size in coins)


def test_quote_is_the_last_tick_at_or_before_the_moment() -> None:
    market, ticks = make_market(), make_ticks(span_ms=MINUTE_MS)
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


def test_known_instrument_gets_its_own_profile() -> None:
    assert profile_for("XAUUSD", 2, 0.01, "commodity") is PROFILES["XAUUSD"]


def test_crosses_start_at_the_product_of_their_legs() -> None:
    base = {symbol: profile.base_price for symbol, profile in PROFILES.items()}
    assert base["EURGBP"] == pytest.approx(base["EURUSD"] / base["GBPUSD"], rel=0.001)
    assert base["EURJPY"] == pytest.approx(base["EURUSD"] * base["USDJPY"], rel=0.001)
