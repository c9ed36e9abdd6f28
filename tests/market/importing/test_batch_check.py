"""The importer's check beside the live one."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.engine.engine import Engine
from market.engine.importing.batch_check import BatchCheck
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_calendar, make_instrument
from tests.market.ticking import HOUR_MS, ms

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


def test_good_batch_is_handed_on_as_it_is(facts: InstrumentFacts) -> None:
    ticks = ticks_of([(1, 1.1, 1.1002, 1.0, 0, number) for number in range(5)])

    assert BatchCheck(facts, NOW_MS).sift(ticks)[0] is ticks


def test_numbered_trades_among_quotes_are_one_batch(facts: InstrumentFacts) -> None:
    ticks = ticks_of([(1, 1.1, 1.1002, 1.0, 0, 7), (1, 1.1, 1.1002, 1.0, 1, 3), (1, 1.1, 1.1002, 1.0, 0, 8)])

    assert BatchCheck(facts, NOW_MS).sift(ticks)[0] is ticks
