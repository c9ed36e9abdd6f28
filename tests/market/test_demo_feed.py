"""The simulated market as a feed: what it gives after a start, a restart and a long sleep."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import time_machine

from instruments.catalogue import catalogue
from market.engine.feeds.demo import CATCH_UP_MS, DemoFeed, simulated
from market.prices.ticks import Tick
from tests.factories import make_calendar, make_instrument
from tests.market.ticking import NOON_MS

pytestmark = pytest.mark.django_db


def batches(feed: DemoFeed, clock: time_machine.Traveller, *shifts_s: int) -> list[list[Tick]]:
    async def read() -> list[list[Tick]]:
        stream, read = feed.batches(), []
        for shift_s in shifts_s:
            clock.shift(timedelta(seconds=shift_s))
            read.append(await anext(stream))
        return read

    return asyncio.run(read())


def market_ticks(symbol: str, start_ms: int, end_ms: int) -> list[Tick]:
    return simulated(catalogue.get(symbol), 7).ticks_between(start_ms, end_ms)


def test_batches_follow_each_other_without_hole_or_overlap(clock: time_machine.Traveller) -> None:
    make_instrument("BTCUSD", digits=2)

    first, second = batches(DemoFeed(7, NOON_MS, {}), clock, 30, 45)

    assert first + second == market_ticks("BTCUSD", NOON_MS, NOON_MS + 75_000)


def test_ticks_of_all_instruments_come_in_order_of_time(clock: time_machine.Traveller) -> None:
    make_instrument("BTCUSD", digits=2)
    make_instrument("ETHUSD", digits=2)

    (ticks,) = batches(DemoFeed(7, NOON_MS, {}), clock, 30)

    assert {tick.symbol for tick in ticks} == {"BTCUSD", "ETHUSD"}
    assert [tick.time_ms for tick in ticks] == sorted(tick.time_ms for tick in ticks)


def test_what_was_kept_before_a_restart_is_not_sent_again(clock: time_machine.Traveller) -> None:
    make_instrument("BTCUSD", digits=2)
    kept = market_ticks("BTCUSD", NOON_MS, NOON_MS + 20_000)

    (ticks,) = batches(DemoFeed(7, NOON_MS, {"BTCUSD": kept[-1].time_ms}), clock, 30)

    assert kept + ticks == market_ticks("BTCUSD", NOON_MS, NOON_MS + 30_000)


def test_closed_market_has_no_ticks(clock: time_machine.Traveller) -> None:
    make_instrument("EURUSD", calendar=make_calendar("morning", "Mon-Fri 09:30-12:01"))

    first, second = batches(DemoFeed(7, NOON_MS, {}), clock, 90, 60)

    assert first == market_ticks("EURUSD", NOON_MS, NOON_MS + 60_000)
    assert second == []


def test_after_a_long_sleep_it_makes_the_last_ten_minutes_only(clock: time_machine.Traveller) -> None:
    make_instrument("BTCUSD", digits=2)

    (ticks,) = batches(DemoFeed(7, NOON_MS, {}), clock, 36_000)

    assert CATCH_UP_MS == 600_000
    assert ticks[0].time_ms >= NOON_MS + 36_000_000 - CATCH_UP_MS
