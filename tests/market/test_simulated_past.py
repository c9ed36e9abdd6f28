"""The simulated past: what it consists of, by instruments that trade round the clock, by day and by night."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import pairwise

import msgspec
import pytest
from django.conf import LazySettings

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from instruments.hours import TradingHours
from market.prices import TIMEFRAMES, PriceBar, interval_start
from market.prices.candles import COARSER, DAY_MS, aggregate
from market.simulated_past import minutes_ms, older_rows, recent_from, recent_rows
from tests.market.ticking import make_facts, ms

pytestmark = pytest.mark.served

MIDNIGHT_MS = ms("2026-11-17T00:00")
CALENDARS = {
    "crypto": "24/7",
    "forex": "Sun 17:00-Fri 17:00",
    "stock": "Mon-Fri 09:30-16:00",
    "night": "Mon-Fri 20:30-01:30",
}
Series = dict[str, list[PriceBar]]


def facts_with(calendar: str) -> InstrumentFacts:
    hours = TradingHours.parse("America/New_York", CALENDARS[calendar], "")
    return msgspec.structs.replace(make_facts(), name=calendar, hours=hours)


@pytest.fixture(params=CALENDARS)
def facts(request: pytest.FixtureRequest) -> InstrumentFacts:
    return facts_with(request.param)


# Making it takes longer than looking at it.
@cache
def older(calendar: str) -> Series:
    return series_of(older_rows(facts_with(calendar), MIDNIGHT_MS))


def series_of(rows: list[tuple[int, str, PriceBar, str]]) -> Series:
    found: Series = defaultdict(list)
    for _, timeframe, candle, _ in rows:
        found[timeframe].append(candle)
    return found


def test_500_candles_of_every_interval_are_in_order_of_open_hours_and_fit_in_themselves(
    facts: InstrumentFacts,
) -> None:
    series = older(facts.name)
    assert set(series) == set(TIMEFRAMES)
    for timeframe, candles in series.items():
        span_ms, opened = TIMEFRAMES[timeframe], [candle.opened_ms for candle in candles]
        assert len(opened) >= 500
        assert opened == sorted(set(opened))
        assert opened[-1] + span_ms <= MIDNIGHT_MS
        for candle in candles:
            assert candle.opened_ms % span_ms == 0
            assert any(facts.hours.sessions_between(candle.opened_ms, candle.opened_ms + span_ms))
            assert 0 < candle.low <= min(candle.open, candle.close)
            assert max(candle.open, candle.close) <= candle.high < candle.ask_high
            assert candle.low < candle.ask_low <= candle.ask_high
            assert candle.volume > 0


@pytest.mark.parametrize("timeframe", COARSER)
def test_where_minutes_are_kept_all_is_their_aggregate(facts: InstrumentFacts, timeframe: str) -> None:
    series = older(facts.name)
    expected = list(aggregate(series["1m"], TIMEFRAMES[timeframe]))

    made = [each for each in series[timeframe] if each.opened_ms >= MIDNIGHT_MS - minutes_ms()]

    assert made == expected


@pytest.mark.parametrize(("finer", "coarser"), list(pairwise(COARSER)))
def test_before_them_each_interval_is_that_of_the_finer_one(
    facts: InstrumentFacts, finer: str, coarser: str
) -> None:
    series = older(facts.name)
    since_ms = interval_start(series[finer][0].opened_ms, DAY_MS)

    expected = list(aggregate(series[finer], TIMEFRAMES[coarser]))

    assert [each for each in series[coarser] if each.opened_ms >= since_ms] == expected


def test_the_demo_can_be_asked_for_more_minutes(settings: LazySettings) -> None:
    settings.DEMO_DAYS = 30

    minutes = series_of(older_rows(facts_with("forex"), MIDNIGHT_MS))["1m"]

    assert MIDNIGHT_MS - 30 * DAY_MS <= minutes[0].opened_ms < MIDNIGHT_MS - 27 * DAY_MS


def test_every_open_minute_has_its_candle(facts: InstrumentFacts) -> None:
    minutes = [candle.opened_ms for candle in older(facts.name)["1m"]]

    sessions = facts.hours.sessions_between(MIDNIGHT_MS - minutes_ms(), MIDNIGHT_MS)
    assert minutes == [at for opens, closes in sessions for at in range(opens, closes, MINUTE_MS)]


def test_days_are_as_wide_as_their_volatility_says() -> None:
    """Those of far back, which are made of a few samples, beside those that are made of minutes."""
    facts = make_facts("BTCUSD", digits=2)
    days = series_of(older_rows(facts, MIDNIGHT_MS))["1d"]
    widths = [(day.high - day.low) / day.open for day in days]
    daily = 0.45 / 365.25**0.5

    # The range of a random walk is 1.6 deviations on average.
    assert 1.2 < sum(widths[:300]) / 300 / daily < 2.0
    assert 0.8 < sum(widths[-8:]) / 8 / daily < 2.8


def test_the_recent_past_goes_on_where_the_older_one_ends(facts: InstrumentFacts) -> None:
    until_ms = MIDNIGHT_MS + DAY_MS - 7 * MINUTE_MS
    begins_ms = recent_from(facts, until_ms)
    recent = series_of(recent_rows(facts, until_ms))

    assert begins_ms == (MIDNIGHT_MS - DAY_MS if facts.hours.next_open(0) is None else MIDNIGHT_MS)
    assert recent["1m"][0].opened_ms >= begins_ms
    assert recent["1m"] == [
        bar for bar in series_of(older_rows(facts, MIDNIGHT_MS + DAY_MS))["1m"]
        if begins_ms <= bar.opened_ms < until_ms
    ]  # fmt: skip


def test_no_recent_candle_is_of_an_interval_that_has_more_to_come(facts: InstrumentFacts) -> None:
    until_ms = ms("2026-11-17T15:07")
    over_ms = until_ms if facts.hours.is_open(until_ms) else facts.hours.next_open(until_ms) or 0

    recent = series_of(recent_rows(facts, until_ms))

    for timeframe, span_ms in TIMEFRAMES.items():
        expected = list(aggregate(recent["1m"], span_ms))
        assert recent[timeframe] == [each for each in expected if each.opened_ms + span_ms <= over_ms]


def test_it_is_a_function_of_the_instrument_and_the_seed(facts: InstrumentFacts, settings: object) -> None:
    first = older_rows(facts, MIDNIGHT_MS)
    assert older_rows(facts, MIDNIGHT_MS) == first

    settings.DEMO_SEED += 1  # type: ignore[attr-defined]
    assert older_rows(facts, MIDNIGHT_MS) != first
