"""The simulated market as a feed: what it gives after a start, a restart and a long sleep."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from math import ceil
from typing import Any

import msgspec
import pytest

from instruments.facts import InstrumentFacts
from instruments.hours import TradingHours
from market.engine.feeds.demo_feed import PIECE_MS, RAPID_PIECE_MS, DemoFeed
from market.prices.records import Tick
from market.simulated.simulated_market import simulated
from tests.market.feeds.receivers import RecordingReceiver, running
from tests.market.ticking import HOURS, NOON_MS, make_facts

BITCOIN = make_facts("BTCUSD", digits=2)
ETHER = make_facts("ETHUSD", digits=2)


def make_feed(*instruments: InstrumentFacts, since_ms: int = NOON_MS, **fields: Any) -> DemoFeed:
    known_ms = fields.pop("known_ms", {})
    return DemoFeed(7, lambda: instruments or [BITCOIN], since_ms, known_ms, **fields)


def with_sessions(sessions: str) -> InstrumentFacts:
    return msgspec.structs.replace(BITCOIN, hours=TradingHours.parse("UTC", sessions, ""))


def ticks_after(feed: DemoFeed, span_ms: int) -> list[Tick]:
    """All that has come so many milliseconds after noon."""
    return [tick for piece in feed.ticks_until(NOON_MS + span_ms) for tick in piece]


def market_ticks(facts: InstrumentFacts, start_ms: int, end_ms: int) -> list[Tick]:
    return simulated(facts, 7).ticks_between(start_ms, end_ms)


def test_pieces_follow_each_other_without_hole_or_overlap() -> None:
    feed = make_feed()
    made = ticks_after(feed, 30_010) + ticks_after(feed, 30_060) + ticks_after(feed, 75_000)
    assert made == market_ticks(BITCOIN, NOON_MS, NOON_MS + 75_000)


def test_what_was_kept_before_a_restart_is_not_sent_again() -> None:
    kept = market_ticks(BITCOIN, NOON_MS, NOON_MS + 20_000)
    made = ticks_after(make_feed(known_ms={"BTCUSD": kept[-1].time_ms}), 30_000)
    assert kept + made == market_ticks(BITCOIN, NOON_MS, NOON_MS + 30_000)


@pytest.mark.parametrize(
    ("sessions", "span_ms"),
    [("Mon-Fri 09:30-12:01", (333, 60_000)), ("Mon-Fri 12:01-13:00", (60_000, 90_000))],
)
def test_market_has_ticks_while_it_is_open(sessions: str, span_ms: tuple[int, int]) -> None:
    made = ticks_after(make_feed(with_sessions(sessions), since_ms=NOON_MS + 333), 90_000)
    assert made == market_ticks(BITCOIN, *(NOON_MS + each for each in span_ms))


def test_after_a_long_sleep_it_makes_the_last_ten_minutes_only_in_pieces() -> None:
    pieces = list(make_feed().ticks_until(NOON_MS + 36_000_000))
    since_ms = NOON_MS + 36_000_000 - 600_000
    made = [tick for piece in pieces for tick in piece]
    assert made == market_ticks(BITCOIN, since_ms, NOON_MS + 36_000_000)
    assert len(pieces) == 600_000 / PIECE_MS
    assert all(piece[-1].time_ms - piece[0].time_ms < PIECE_MS for piece in pieces)


def test_instrument_that_was_edited_is_made_anew() -> None:
    instruments = [BITCOIN]
    feed = DemoFeed(7, lambda: instruments, NOON_MS, {})
    ticks_after(feed, 10_000)
    instruments[0] = make_facts("BTCUSD", digits=2, volume_kind="traded")
    assert any(tick.side for tick in ticks_after(feed, 20_000))


@pytest.mark.parametrize("rate", [0.0, 800.0])
def test_ticks_of_all_instruments_come_in_order_of_time_and_share_the_rate(rate: float) -> None:
    made = ticks_after(make_feed(BITCOIN, ETHER, rate=rate), 1_000 if rate else 30_000)
    assert {tick.symbol for tick in made} == {"BTCUSD", "ETHUSD"}
    assert [tick.time_ms for tick in made] == sorted(tick.time_ms for tick in made)
    if rate:
        assert Counter(tick.symbol for tick in made) == {"BTCUSD": 400, "ETHUSD": 400}


def test_rapid_pieces_are_short_reach_back_a_second_only_and_keep_the_hours_of_the_market() -> None:
    pieces = list(make_feed(rate=400.0).ticks_until(NOON_MS + 60_000))
    assert len(pieces) == 20
    assert all(piece[-1].time_ms - piece[0].time_ms < RAPID_PIECE_MS for piece in pieces)
    assert pieces[0][0].time_ms >= NOON_MS + 59_000
    closed = make_facts("EURUSD", hours="stock")
    assert not HOURS["stock"].is_open(NOON_MS)
    assert ticks_after(make_feed(closed, rate=400.0), 1_000) == []


async def test_engine_hears_of_ticks_as_they_come() -> None:
    receiver, since_ms = RecordingReceiver(), time.time_ns() // 1_000_000 - 2_000
    async with running(make_feed(since_ms=since_ms), receiver):
        ticks = await receiver.until_ticks(3)
    assert ticks == market_ticks(BITCOIN, since_ms, ticks[-1].time_ms + 1)


async def test_feed_without_ticks_gives_signs_of_life() -> None:
    receiver, since_ms = RecordingReceiver(), time.time_ns() // 1_000_000
    async with running(DemoFeed(7, list, since_ms, {}), receiver):
        await receiver.until(lambda: receiver.takes > 3)
    assert set(receiver.order) == {"alive"}


class Moved:
    """A clock that goes on only while the feed sleeps, and a little more than it meant to."""

    def __init__(self) -> None:
        self.now_ms = NOON_MS
        self.late: list[int] = []
        self.ticks: list[Tick] = []

    def __call__(self) -> int:
        return self.now_ms

    async def sleep(self, seconds: float) -> None:
        if self.now_ms > NOON_MS + 60_000:
            raise asyncio.CancelledError
        self.now_ms += ceil(seconds * 1000)

    def take(self, ticks: list[Tick]) -> None:
        self.ticks += ticks
        self.late += [self.now_ms - tick.time_ms for tick in ticks]


async def test_each_tick_is_sent_when_its_time_comes() -> None:
    moved, receiver = Moved(), RecordingReceiver()
    receiver.take = moved.take  # type: ignore[method-assign]
    with suppress(asyncio.CancelledError):
        await make_feed(BITCOIN, ETHER, clock=moved, sleep=moved.sleep).run(receiver)
    assert set(moved.late) == {0}
    sent = {tick for tick in moved.ticks if tick.symbol == "BTCUSD"}
    assert sent == set(market_ticks(BITCOIN, NOON_MS, moved.ticks[-1].time_ms + 1))


async def test_ticks_that_are_late_already_go_at_once_and_in_order() -> None:
    moved, receiver = Moved(), RecordingReceiver()
    receiver.take = moved.take  # type: ignore[method-assign]
    moved.now_ms += 30_000
    with suppress(asyncio.CancelledError):
        await make_feed(clock=moved, sleep=moved.sleep).run(receiver)
    assert moved.ticks == market_ticks(BITCOIN, NOON_MS, moved.ticks[-1].time_ms + 1)
    assert set(moved.late[-10:]) == {0}
