"""What is true of the engine's candles whatever comes: weekends, holidays, clocks that change, late ticks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings

from market.engine.engine import Engine
from market.prices.candles import COARSER, MINUTE_MS, TIMEFRAMES, PriceBar
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.market.ticking import aggregate, minutes_of
from tests.market.trading_days import MARKETS, OVERTAKEN, Lived, Story, hours_of, live, make_markets, stories

pytestmark = pytest.mark.django_db
LONGEST_MS = 12 * MINUTE_MS
quickly = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def _markets() -> None:
    make_markets()


def flat_minutes(lived: Lived, symbol: str) -> list[tuple[PriceBar, PriceBar]]:
    """Those in which no tick was taken, each after the one before it."""
    ticked = {minute.opened_ms for minute in minutes_of(by_time(lived.taken[symbol]))}
    return [pair for pair in pairwise(lived.candles(symbol)) if pair[1].opened_ms not in ticked]


def by_time(ticks: list[Tick]) -> list[Tick]:
    return sorted(ticks, key=lambda tick: tick.time_ms)


def hundred_millionths(volume: float) -> int:
    return round(volume * 1e8)


@quickly
@given(stories(late=True))
def test_every_interval_is_the_aggregate_of_its_minutes(story: Story) -> None:
    lived = live(story)

    for symbol in MARKETS:
        minutes = lived.candles(symbol)
        for timeframe, span_ms in COARSER.items():
            assert lived.candles(symbol, timeframe) == list(aggregate(minutes, span_ms))


@quickly
@given(stories(late=True))
@example(OVERTAKEN)
def test_minutes_are_what_the_taken_ticks_say_and_flat_between_them(story: Story) -> None:
    lived = live(story)

    for symbol in MARKETS:
        flat = flat_minutes(lived, symbol)
        quiet = {minute.opened_ms for _, minute in flat}
        ticked = [minute for minute in lived.candles(symbol) if minute.opened_ms not in quiet]
        assert ticked == list(minutes_of(by_time(lived.taken[symbol])))
        for before, minute in flat:
            assert {minute.open, minute.high, minute.low, minute.close} == {before.close}
            assert minute.volume == 0


@quickly
@given(stories(late=True))
def test_low_is_lowest_and_high_is_highest(story: Story) -> None:
    lived = live(story)

    for _, _, candle, _ in lived.engine.rows:
        assert candle.low <= min(candle.open, candle.close) <= max(candle.open, candle.close) <= candle.high
        assert candle.ask_low <= candle.ask_high


@quickly
@given(stories(late=True))
@example(OVERTAKEN)
def test_volume_adds_up_in_every_timeframe(story: Story) -> None:
    lived = live(story)

    for symbol, ticks in lived.taken.items():
        traded = sum(hundred_millionths(tick.volume) for tick in ticks)
        for timeframe in TIMEFRAMES:
            candles = lived.candles(symbol, timeframe)
            assert sum(hundred_millionths(candle.volume) for candle in candles) == traded


@quickly
@given(stories(late=True))
def test_no_minute_opens_while_its_market_is_closed(story: Story) -> None:
    lived = live(story)

    for symbol in MARKETS:
        assert all(hours_of(symbol).is_open(minute.opened_ms) for minute in lived.candles(symbol))


@quickly
@given(stories())
def test_market_of_which_is_heard_all_the_time_has_every_minute(story: Story) -> None:
    steps = [step._replace(heard=True, gap_ms=step.gap_ms % LONGEST_MS) for step in story.steps]
    lived = live(story._replace(steps=steps))

    for symbol in [symbol for symbol, ticks in lived.taken.items() if ticks]:
        opened_ms = [minute.opened_ms for minute in lived.candles(symbol)]
        passed = range(opened_ms[0], lived.ended_ms + 1, MINUTE_MS)
        assert opened_ms == [minute_ms for minute_ms in passed if hours_of(symbol).is_open(minute_ms)]


@quickly
@given(stories(late=True))
@example(OVERTAKEN)
def test_late_ticks_are_counted(story: Story) -> None:
    lived = live(story)

    refused = [reason for reason in lived.reasons if reason]
    assert lived.engine.source("push").refused.total() == len(refused)


@quickly
@given(stories(late=True))
@example(OVERTAKEN)
def test_closed_minute_never_changes_and_what_is_coarser_only_by_minutes_that_were_missed(
    story: Story,
) -> None:
    """A row that is written again goes on: its open stays, its extremes widen, its volume grows."""
    written: dict[tuple[int, str, int], PriceBar] = {}
    for instrument_id, timeframe, candle, _ in live(story).engine.rows:
        before = written.setdefault((instrument_id, timeframe, candle.opened_ms), candle)
        assert timeframe != "1m" or candle is before
        assert candle.open == before.open
        assert candle.low <= before.low <= before.high <= candle.high
        assert candle.volume >= before.volume
        written[instrument_id, timeframe, candle.opened_ms] = candle


@quickly
@given(stories(late=True))
def test_replaying_gives_the_same_rows(story: Story) -> None:
    assert live(story).engine.rows == live(story).engine.rows


@quickly
@given(stories(late=True))
def test_engine_that_repeats_what_another_decided_has_the_same_rows(story: Story) -> None:
    first, second = live(story).engine, Engine(Prices("bid"))

    for record in first.records:
        second.repeat(record, story.start_ms)

    assert second.rows == first.rows
