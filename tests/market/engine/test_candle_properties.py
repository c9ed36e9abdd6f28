"""What is true of the engine's candles whatever comes: weekends, holidays, clocks that change, late ticks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings

from core.times import MINUTE_MS
from market.engine.engine import Engine
from market.prices.candles import COARSER, PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.market.ticking import aggregate, minutes_of
from tests.market.trading_days import (
    MARKETS,
    OVERTAKEN,
    TradingDays,
    hours_of,
    make_markets,
    run_engine,
    trading_days,
)

pytestmark = pytest.mark.django_db
LONGEST_MS = 12 * MINUTE_MS
quickly = settings(max_examples=50)


@pytest.fixture(autouse=True)
def _markets() -> None:
    make_markets()


@quickly
@given(trading_days(late=True))
@example(OVERTAKEN)
def test_candles_are_what_the_taken_ticks_say_and_flat_between_them(days: TradingDays) -> None:
    run = run_engine(days)

    for symbol in MARKETS:
        minutes, hours = run.candles(symbol), hours_of(symbol)
        said = {minute.opened_ms: minute for minute in minutes_of(by_time(run.taken[symbol]))}
        assert [minute for minute in minutes if minute.opened_ms in said] == list(said.values())
        assert all(hours.is_open(minute.opened_ms) for minute in minutes)
        for before, minute in pairwise(minutes):
            if minute.opened_ms not in said:
                assert {minute.open, minute.high, minute.low, minute.close} == {before.close}
                assert minute.volume == 0
        for timeframe, span_ms in COARSER.items():
            assert run.candles(symbol, timeframe) == list(aggregate(minutes, span_ms))
    refused = [reason for reason in run.reasons if reason]
    assert run.engine.feed_state("push").refused.total() == len(refused)


def by_time(ticks: list[Tick]) -> list[Tick]:
    return sorted(ticks, key=lambda tick: tick.time_ms)


@quickly
@given(trading_days())
def test_market_of_which_is_heard_all_the_time_has_every_minute(days: TradingDays) -> None:
    steps = [step._replace(heard=True, gap_ms=step.gap_ms % LONGEST_MS) for step in days.steps]
    run = run_engine(days._replace(steps=steps))

    for symbol in [symbol for symbol, ticks in run.taken.items() if ticks]:
        opened_ms = [minute.opened_ms for minute in run.candles(symbol)]
        passed = range(opened_ms[0], run.ended_ms + 1, MINUTE_MS)
        assert opened_ms == [minute_ms for minute_ms in passed if hours_of(symbol).is_open(minute_ms)]


@quickly
@given(trading_days(late=True))
@example(OVERTAKEN)
def test_closed_minute_never_changes_and_what_is_coarser_only_by_minutes_that_were_missed(
    days: TradingDays,
) -> None:
    """A row that is written again goes on: its open stays, its extremes widen, its volume grows."""
    written: dict[tuple[int, str, int], PriceBar] = {}
    for instrument_id, timeframe, candle, _ in run_engine(days).engine.rows:
        before = written.setdefault((instrument_id, timeframe, candle.opened_ms), candle)
        assert timeframe != "1m" or candle is before
        assert candle.open == before.open
        assert candle.low <= before.low <= before.high <= candle.high
        assert candle.volume >= before.volume
        written[instrument_id, timeframe, candle.opened_ms] = candle


@quickly
@given(trading_days(late=True))
def test_replaying_and_repeating_give_the_same_rows(days: TradingDays) -> None:
    first, second, repeating = run_engine(days).engine, run_engine(days).engine, Engine(Prices("bid"))
    for record in first.records:
        repeating.repeat(record, days.start_ms)

    assert first.rows == second.rows == repeating.rows
