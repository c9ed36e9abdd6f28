"""What an import makes of ticks in batches, beside what the engine makes of them one by one."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.engine.engine import Engine
from market.engine.importing.minutes import BatchCheck, FileEnd, FileMinutes
from market.prices.candles import Closed, PriceBar, interval_start
from market.prices.quotes import Prices
from market.prices.records import EmptyMinute, MarketClosed, Tick, TickAccepted
from tests.factories import make_calendar, make_instrument
from tests.market.ticking import HOUR_MS, TickSequence, copy, make_facts, ms, tick_sequences

pytestmark = [pytest.mark.django_db, pytest.mark.services]

# A Friday: the market closes at 21:00 and opens again on Sunday.
# Half a minute in: live, the minute before is closed and its ticks are too late; no file closes any.
EVENING_MS = ms("2026-11-20T20:58:30")
NOW_MS = EVENING_MS + HOUR_MS * 72
Move = tuple[int, float, float, float, int, int | None]
prices = st.sampled_from([1.1, 1.1002])
odd_numbers = st.sampled_from([nan, inf, -inf, 0.0, 0.000001, -1.0, 1e10, 9e9])
steps = st.integers(0, 5) | st.sampled_from([-1, 61_000, 48 * HOUR_MS, 100 * HOUR_MS])
volumes = st.sampled_from([0.0, 1.0]) | odd_numbers
good_moves = st.tuples(st.integers(1, 5), prices, st.just(1.1003), st.just(1.0), st.just(0), st.none())
any_moves = st.tuples(
    *(steps, prices | odd_numbers, prices | odd_numbers, volumes),
    *(st.sampled_from([-1, 0, 1]), st.none() | st.integers(0, 9)),
)


@pytest.fixture
def facts() -> InstrumentFacts:
    calendar = make_calendar("forex", "Sun 17:00-Fri 17:00", timezone="America/New_York")
    make_instrument("EURUSD", calendar=calendar)
    return catalogue.get("EURUSD")


def ticks_of(moves: list[Move]) -> list[Tick]:
    at_ms, ticks = EVENING_MS, list[Tick]()
    for step_ms, bid, ask, volume, side, number in moves:
        at_ms += step_ms
        ticks.append(Tick("EURUSD", bid, ask, at_ms, volume, side, None, number))
    return ticks


@settings(max_examples=300)
@given(st.lists(good_moves | any_moves, max_size=20), st.integers(1, 7))
def test_ticks_are_refused_for_the_reasons_of_the_live_door(
    facts: InstrumentFacts, moves: list[Move], batch: int
) -> None:
    check, engine, ticks = BatchCheck(facts, NOW_MS), Engine(Prices("bid")), ticks_of(moves)

    reasons = dict[int, str]()
    for start in range(0, len(ticks), batch):
        taken, refused = check.sift(ticks[start : start + batch])
        assert len(taken) + len(refused) == len(ticks[start : start + batch])
        reasons |= {start + index: reason for index, reason in refused}

    live = engine.take("push", ticks, NOW_MS)
    assert reasons == {index: reason for index, reason in enumerate(live) if reason is not None}


@pytest.mark.parametrize("sides", [(0, 0, 0), (0, 1, 0)], ids=["quotes", "trades among quotes"])
def test_good_batch_is_handed_on_as_it_is(facts: InstrumentFacts, sides: tuple[int, ...]) -> None:
    numbers = (7, 3, 8) if any(sides) else (7, 8, 9)
    ticks = ticks_of([(1, 1.1, 1.1002, 1.0, *each) for each in zip(sides, numbers, strict=True)])
    assert BatchCheck(facts, NOW_MS).sift(ticks)[0] is ticks


FRIDAY_MS = ms("2026-11-20T21:58")


def facts_of(sequence: TickSequence, **fields: Any) -> InstrumentFacts:
    return msgspec.structs.replace(make_facts("X", **fields), hours=sequence.hours)


def quote(at_ms: int) -> Tick:
    return Tick("X", 1.08, 1.0802, at_ms)


def folded(minutes: FileMinutes, ticks: list[Tick], batch: int = 100) -> list[PriceBar]:
    made = list[PriceBar]()
    for start in range(0, len(ticks), batch):
        made += minutes.take(ticks[start : start + batch])
    end = minutes.end()
    return made if end is None else [*made, end.minute]


def tick_by_tick(facts: InstrumentFacts, ticks: list[Tick], candle_price: str) -> list[PriceBar]:
    """What a live market decides of each tick, and of each quiet minute before it."""
    prices, made, quiet_ms = Prices(candle_price), dict[int, PriceBar](), ticks[0].time_ms
    for number, tick in enumerate(ticks):
        quiet = facts.hours.sessions_between(quiet_ms, interval_start(tick.time_ms, MINUTE_MS))
        minutes = [at_ms for opens_ms, closes_ms in quiet for at_ms in range(opens_ms, closes_ms, MINUTE_MS)]
        bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
        volume = 1.0 if facts.volume_kind == "ticks" else tick.volume
        for at_ms in minutes:
            made |= closed(prices.apply(EmptyMinute("X", at_ms), facts))
        made |= closed(prices.apply(TickAccepted("X", bid, ask, tick.time_ms, volume, number), facts))
        quiet_ms = interval_start(tick.time_ms, MINUTE_MS) + MINUTE_MS
    made |= closed(prices.apply(MarketClosed("X", 1 << 52), facts))
    return [made[opened_ms] for opened_ms in sorted(made)]


def closed(candles: list[Closed]) -> dict[int, PriceBar]:
    return {candle.opened_ms: candle for timeframe, candle in candles if timeframe == "1m"}


@settings(max_examples=60)
@given(
    tick_sequences(),
    st.integers(1, 50),
    st.sampled_from(["bid", "mid"]),
    st.sampled_from(["ticks", "trades"]),
)
def test_minutes_are_those_of_the_live_market(
    sequence: TickSequence, batch: int, price: str, volumes: str
) -> None:
    # Fewer digits than the ticks have, so that rounding shows.
    facts = facts_of(sequence, volume_kind=volumes, digits=4)

    made = folded(FileMinutes(facts, mid=price == "mid"), sequence.ticks, batch)

    assert made == tick_by_tick(facts, sequence.ticks, price)


@settings(max_examples=30)
@given(tick_sequences(), st.data())
def test_files_named_together_are_as_one(sequence: TickSequence, data: st.DataObject) -> None:
    facts, cut = facts_of(sequence), data.draw(st.integers(0, len(sequence.ticks)))
    first = FileMinutes(facts, mid=False)
    made, end = list(first.take(sequence.ticks[:cut])), first.end()
    made += [copy(end.minute)] if end else []

    made += folded(FileMinutes(facts, mid=False, before=end), sequence.ticks[cut:])

    # The minute that goes on is written again.
    stored = {minute.opened_ms: minute for minute in made}
    assert list(stored.values()) == folded(FileMinutes(facts, mid=False), sequence.ticks)


def test_weekend_has_no_minutes() -> None:
    monday_ms = ms("2026-11-22T22:01")
    made = folded(FileMinutes(make_facts(hours="forex"), mid=False), [quote(FRIDAY_MS), quote(monday_ms)])
    opened = [FRIDAY_MS, FRIDAY_MS + MINUTE_MS, monday_ms - MINUTE_MS, monday_ms]
    assert [candle.opened_ms for candle in made] == opened


@pytest.mark.parametrize(("hours", "gaps"), [(24, 0), (25, 1)])
def test_more_than_a_day_of_open_market_without_ticks_is_a_gap(hours: int, gaps: int) -> None:
    minutes = FileMinutes(make_facts(hours="always"), mid=False)
    made = folded(minutes, [quote(FRIDAY_MS), quote(FRIDAY_MS + hours * 60 * MINUTE_MS)])
    assert minutes.gaps == gaps
    assert len(made) == (2 if gaps else hours * 60 + 1)


def test_older_file_does_not_go_on_from_the_one_before() -> None:
    facts = make_facts(hours="always")
    later = FileEnd(PriceBar(FRIDAY_MS, 9.0, 9.0, 9.0, 9.0, 1.0, 9.0, 9.0), quote(FRIDAY_MS))
    (made,) = folded(FileMinutes(facts, mid=False, before=later), [quote(FRIDAY_MS - MINUTE_MS)])
    assert (made.opened_ms, made.close) == (FRIDAY_MS - MINUTE_MS, 1.08)
