"""What is true of the engine's candles whatever comes: weekends, holidays, clocks that change, late ticks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings

from core.times import MINUTE_MS
from market.engine.engine import Engine
from market.prices.candles import COARSER, TIMEFRAMES, PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.market.ticking import aggregate, minutes_of
from tests.market.trading_days import (
    MARKETS,
    OVERTAKEN,
    EngineRun,
    TradingDays,
    hours_of,
    make_markets,
    run_engine,
    trading_days,
)

pytestmark = pytest.mark.django_db
LONGEST_MS = 12 * MINUTE_MS
quickly = settings(max_examples=30)


@pytest.fixture(autouse=True)
def _markets() -> None:
    make_markets()


def flat_minutes(run: EngineRun, symbol: str) -> list[tuple[PriceBar, PriceBar]]:
    """Those in which no tick was taken, each after the one before it."""
    ticked = {minute.opened_ms for minute in minutes_of(by_time(run.taken[symbol]))}
    return [pair for pair in pairwise(run.candles(symbol)) if pair[1].opened_ms not in ticked]


def by_time(ticks: list[Tick]) -> list[Tick]:
    return sorted(ticks, key=lambda tick: tick.time_ms)


def hundred_millionths(volume: float) -> int:
    return round(volume * 1e8)


@quickly
@given(trading_days(late=True))
def test_every_interval_is_the_aggregate_of_its_minutes(days: TradingDays) -> None:
    run = run_engine(days)

    for symbol in MARKETS:
        minutes = run.candles(symbol)
        for timeframe, span_ms in COARSER.items():
            assert run.candles(symbol, timeframe) == list(aggregate(minutes, span_ms))


@quickly
@given(trading_days(late=True))
@example(OVERTAKEN)
def test_minutes_are_what_the_taken_ticks_say_and_flat_between_them(days: TradingDays) -> None:
    run = run_engine(days)

    for symbol in MARKETS:
        flat = flat_minutes(run, symbol)
        quiet = {minute.opened_ms for _, minute in flat}
        ticked = [minute for minute in run.candles(symbol) if minute.opened_ms not in quiet]
        assert ticked == list(minutes_of(by_time(run.taken[symbol])))
        for before, minute in flat:
            assert {minute.open, minute.high, minute.low, minute.close} == {before.close}
            assert minute.volume == 0


@quickly
@given(trading_days(late=True))
def test_low_is_lowest_and_high_is_highest(days: TradingDays) -> None:
    run = run_engine(days)

    for _, _, candle, _ in run.engine.rows:
        assert candle.low <= min(candle.open, candle.close) <= max(candle.open, candle.close) <= candle.high
        assert candle.ask_low <= candle.ask_high


@quickly
@given(trading_days(late=True))
@example(OVERTAKEN)
def test_volume_adds_up_in_every_timeframe(days: TradingDays) -> None:
    run = run_engine(days)

    for symbol, ticks in run.taken.items():
        traded = sum(hundred_millionths(tick.volume) for tick in ticks)
        for timeframe in TIMEFRAMES:
            candles = run.candles(symbol, timeframe)
            assert sum(hundred_millionths(candle.volume) for candle in candles) == traded


@quickly
@given(trading_days(late=True))
def test_no_minute_opens_while_its_market_is_closed(days: TradingDays) -> None:
    run = run_engine(days)

    for symbol in MARKETS:
        assert all(hours_of(symbol).is_open(minute.opened_ms) for minute in run.candles(symbol))


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
def test_late_ticks_are_counted(days: TradingDays) -> None:
    run = run_engine(days)

    refused = [reason for reason in run.reasons if reason]
    assert run.engine.feed_state("push").refused.total() == len(refused)


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
def test_replaying_gives_the_same_rows(days: TradingDays) -> None:
    assert run_engine(days).engine.rows == run_engine(days).engine.rows


@quickly
@given(trading_days(late=True))
def test_engine_that_repeats_what_another_decided_has_the_same_rows(days: TradingDays) -> None:
    first, second = run_engine(days).engine, Engine(Prices("bid"))

    for record in first.records:
        second.repeat(record, days.start_ms)

    assert second.rows == first.rows
