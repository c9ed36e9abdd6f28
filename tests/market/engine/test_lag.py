"""How late a feed is, and how long a fill has to wait because of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.engine.admission import LAG_MINUTES, LAG_STEP_MS, RecentLags
from market.engine.engine import Engine
from market.engine.listeners import FillTerms
from market.engine.status import status_of
from market.prices.quotes import Prices
from market.prices.records import Tick
from signals_feed.contradictions import MOST_WAIT_MS
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS


@given(st.lists(st.integers(0, 9_999), min_size=1, max_size=300))
def test_at_most_one_tick_in_a_hundred_was_later_and_no_less_would_do(lags: list[int]) -> None:
    recent = RecentLags()
    for lag_ms in lags:
        recent.note(lag_ms)
    p99_ms = recent.p99_ms(len(lags))
    assert sum(lag_ms >= p99_ms for lag_ms in lags) <= len(lags) // 100
    assert sum(lag_ms >= p99_ms - LAG_STEP_MS for lag_ms in lags) > len(lags) // 100


@pytest.fixture
def engine(db: None) -> Engine:
    for symbol in ("EURUSD", "GBPUSD"):
        make_instrument(symbol, source=f"push:{symbol}")
    return Engine(Prices("bid"), fill_after_ms=500)


def take(engine: Engine, count: int, lag_ms: int, after_ms: int = 0) -> None:
    for number in range(count):
        at_ms = NOON_MS + after_ms + number * 10
        tick = Tick("EURUSD", 1.08, 1.0802, at_ms - lag_ms, 1.0)
        assert engine.accept(tick, at_ms, "push:EURUSD") is None


@pytest.mark.parametrize(
    ("late", "lag_ms", "wait_ms"),
    [
        (0, 0, 500),
        (5, 500, 500),
        (1, 5_000, 500),
        (2, 510, 550),
        (2, 9_960, 10_000),
        (2, 99_999, MOST_WAIT_MS),
    ],
)
def test_a_fill_waits_as_long_as_the_feed_is_late_but_never_less_than_is_set(
    engine: Engine, late: int, lag_ms: int, wait_ms: int
) -> None:
    take(engine, late, lag_ms)
    take(engine, 199 - late, 0, lag_ms)
    assert [engine.fill_terms(symbol, NOON_MS).wait_ms for symbol in ("EURUSD", "GBPUSD")] == [wait_ms, 500]
    assert status_of(engine, NOON_MS, "", "").lagging == (("EURUSD",) if wait_ms > 10_000 else ())


def test_what_came_late_an_hour_ago_counts_no_longer(engine: Engine) -> None:
    def wait_ms(minute: int) -> int:
        engine.keep_time(NOON_MS + minute * MINUTE_MS)
        return engine.fill_terms("EURUSD", NOON_MS).wait_ms

    engine.keep_time(NOON_MS)
    take(engine, 10, 2_000)
    assert [wait_ms(minute) for minute in (1, LAG_MINUTES - 1, LAG_MINUTES)] == [2_050, 2_050, 500]
    # Nor does what came in time.
    take(engine, 2_000, 0, LAG_MINUTES * MINUTE_MS)
    assert wait_ms(2 * LAG_MINUTES) == 500
    take(engine, 10, 2_000, 2 * LAG_MINUTES * MINUTE_MS)
    assert wait_ms(2 * LAG_MINUTES + 1) == 2_050
    # The engine's machine slept.
    assert wait_ms(10 * LAG_MINUTES) == 500


def test_a_feed_that_serves_an_instrument_no_more_is_as_late_as_it_was(engine: Engine) -> None:
    take(engine, 200, 5_000)
    engine.serves_no_more("push:EURUSD", "EURUSD")
    assert engine.fill_terms("EURUSD", NOON_MS).wait_ms == 5_050


def test_terms_say_how_far_the_clock_is_from_the_venue_s_once_that_is_known(engine: Engine) -> None:
    make_instrument("XAUUSD", source="kraken")
    state = engine.feed_state("kraken")
    engine.accept(Tick("XAUUSD", 10.0, 10.0, NOON_MS), NOON_MS, "kraken")
    found = [engine.fill_terms("XAUUSD", NOON_MS).ahead_ms]
    for source_ms, ahead_ms in ((0, 0), (0, 70), (NOON_MS, -70), (NOON_MS, 2_001)):
        state.note_time(source_ms, ahead_ms)
        found.append(engine.fill_terms("XAUUSD", NOON_MS).ahead_ms)
    assert found == [0, None, 0, -70, 2_001]


def test_what_is_simulated_is_never_late_though_the_machine_slept(engine: Engine) -> None:
    make_instrument("XAUUSD", source="demo")
    engine.accept(Tick("XAUUSD", 10.0, 10.0, NOON_MS), NOON_MS + 60_000, "demo")
    assert engine.fill_terms("XAUUSD", NOON_MS).wait_ms == 500


def test_terms_say_how_long_prices_were_unsettled_and_another_engine_counts_on_from_there(
    engine: Engine,
) -> None:
    make_instrument("XAUUSD", source="push:XAUUSD", outlier_percent="0.5")
    for price, after_ms in ((10.0, 0), (20.0, 5)):
        engine.accept(Tick("XAUUSD", price, price, NOON_MS + after_ms), NOON_MS + after_ms, "push:XAUUSD")
    engine.changed.clear()
    assert engine.fill_terms("XAUUSD", NOON_MS + 305) == FillTerms(500, settled=False, unsettled_ms=300)
    (checkpoint,) = engine.checkpoints(engine.changed.values()).values()
    assert checkpoint.unsettled_ms == 300
