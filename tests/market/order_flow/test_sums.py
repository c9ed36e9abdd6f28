"""The order flow of each minute: the sums of what was published of its ticks."""

from __future__ import annotations

from decimal import Decimal
from itertools import zip_longest

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.prices.order_flow import FlowState, FlowUpdate, MinuteFlow, OrderFlow
from market.prices.records import Tick, TickAccepted
from tests.market.ticking import NOON_MS, ms

pytestmark = pytest.mark.services

DIGITS = 2
MIDNIGHT_MS = ms("2026-11-19T00:00")


def trade(time_ms: int, volume: float = 1.0, side: int = 1) -> Tick:
    return Tick("X", 100.0, 100.1, time_ms, volume, side)


def flow_of(*ticks: Tick) -> OrderFlow:
    flow = OrderFlow(DIGITS)
    for tick in ticks:
        flow.take(tick, True)
    return flow


def test_minute_has_the_volume_of_each_side_and_the_running_sum() -> None:
    flow = flow_of(trade(NOON_MS, 2.5), trade(NOON_MS + 1, 0.25, -1), trade(NOON_MS + MINUTE_MS - 1, 1, -1))

    assert flow.minute(NOON_MS) == MinuteFlow(NOON_MS, 1.25, 2.5, 1.25, 0)


def test_tick_of_the_next_minute_is_none_of_this_one() -> None:
    flow = flow_of(trade(NOON_MS, 2.5), trade(NOON_MS + MINUTE_MS, 4))

    assert flow.minute(NOON_MS) == MinuteFlow(NOON_MS, 0.0, 2.5, 2.5, 0)
    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 4.0, 6.5, 0)


def test_minute_without_an_update_has_the_running_sum() -> None:
    flow = flow_of(trade(NOON_MS, 2.5))

    assert flow.minute(NOON_MS + 3 * MINUTE_MS) == MinuteFlow(NOON_MS + 3 * MINUTE_MS, 0.0, 0.0, 2.5, 0)


def test_running_sum_begins_again_at_midnight() -> None:
    before, after = trade(MIDNIGHT_MS - 1, 2.5), trade(MIDNIGHT_MS, 1.0)
    flow = flow_of(before)

    assert flow.minute(MIDNIGHT_MS) == MinuteFlow(MIDNIGHT_MS, 0.0, 0.0, 0.0, 0)
    flow.take(after, True)
    sums = [flow.minute(time_ms) for time_ms in (MIDNIGHT_MS - MINUTE_MS, MIDNIGHT_MS)]
    assert [minute and minute.cumulative_delta for minute in sums] == [2.5, 1.0]


def test_quiet_minute_between_two_with_updates_has_the_sum_of_the_first() -> None:
    flow = flow_of(trade(NOON_MS, 2.5), trade(NOON_MS + 2 * MINUTE_MS, 1.0))

    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 0.0, 2.5, 0)


def test_minute_before_the_last_two_is_not_known_any_more() -> None:
    flow = flow_of(trade(NOON_MS), trade(NOON_MS + MINUTE_MS), trade(NOON_MS + 2 * MINUTE_MS))

    assert flow.minute(NOON_MS) is None


@pytest.mark.parametrize(
    ("ended_ms", "counted"), [(5_000, 1), (MINUTE_MS, 1), (0, 0), (MINUTE_MS + 5_000, 0)]
)
def test_absorption_belongs_to_the_minute_in_which_its_window_lies(ended_ms: int, counted: int) -> None:
    flow = flow_of(trade(NOON_MS))

    flow.note_absorption(NOON_MS + ended_ms)

    minute = flow.minute(NOON_MS)
    assert minute is not None
    assert minute.absorptions == counted


def test_delta_is_exact_to_the_last_digit() -> None:
    assert MinuteFlow(0, 0.1, 0.3, 0.0, 0).delta == 0.2


def test_what_the_version_before_kept_leaves_its_minute_unknown_and_not_the_next() -> None:
    flow = OrderFlow(DIGITS)
    flow.restore(FlowState(NOON_MS // (1440 * MINUTE_MS), 250_000_000, 1, 20_000), NOON_MS + 30_000)
    flow.take(trade(NOON_MS + 40_000, 1.0), True)

    assert flow.state().minute_ms is None
    assert flow.minute(NOON_MS) is None
    flow.take(trade(NOON_MS + MINUTE_MS, 1.0), True)
    assert flow.minute(NOON_MS) is None
    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 1.0, 4.5, 0)


def test_quiet_minute_after_what_the_version_before_kept_is_known() -> None:
    flow = OrderFlow(DIGITS)
    flow.restore(FlowState(NOON_MS // (1440 * MINUTE_MS), 250_000_000, 1, 20_000), NOON_MS + 30_000)

    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 0.0, 2.5, 0)


def test_the_version_before_can_read_what_is_kept() -> None:
    class Before(msgspec.Struct, frozen=True):
        day: int = 0
        units: int = 0
        side: int = 0
        half_points: int = 0

    state = flow_of(trade(NOON_MS, 2.5)).state()

    kept = msgspec.convert(msgspec.to_builtins(state), Before)
    assert (kept.day, kept.units) == (NOON_MS // (1440 * MINUTE_MS), 250_000_000)


Made = list[tuple[int, int, int, int]]
steps = st.tuples(
    st.integers(0, 20_000) | st.integers(0, 5 * MINUTE_MS) | st.integers(0, 1440 * MINUTE_MS),
    st.integers(99, 102),
    st.integers(1, 10**13),
    st.sampled_from([-1, 0, 1]),
)
sequences = st.lists(steps, min_size=1, max_size=40)


def ticks_of(made: Made) -> list[Tick]:
    ticks, at_ms = [], NOON_MS
    for gap_ms, bid, units, side in made:
        at_ms += gap_ms
        ticks.append(Tick("X", bid, bid + 1, at_ms, units / 1e8, side))
    return ticks


def run(flow: OrderFlow, ticks: list[Tick], has_sides: bool) -> tuple[list[FlowUpdate], list[MinuteFlow]]:
    """The updates, and each minute when it has ended, as the engine asks for it."""
    updates, minutes = [], list[MinuteFlow]()
    for tick, following in zip_longest(ticks, ticks[1:]):
        if (update := flow.take(tick, has_sides)) is not None:
            updates.append(update)
        opened_ms = tick.time_ms - tick.time_ms % MINUTE_MS
        if following is None or following.time_ms >= opened_ms + MINUTE_MS:
            minute = flow.minute(opened_ms)
            assert minute is not None
            minutes.append(minute)
    return updates, minutes


def exact(values: list[float]) -> Decimal:
    return sum((Decimal(repr(value)) for value in values), Decimal())


@given(sequences, st.booleans())
def test_minutes_are_the_sums_of_their_updates(made: Made, has_sides: bool) -> None:
    updates, minutes = run(OrderFlow(DIGITS), ticks_of(made), has_sides)

    for minute in minutes:
        own = [each for each in updates if each.time_ms // MINUTE_MS == minute.opened_ms // MINUTE_MS]
        day = minute.opened_ms // (1440 * MINUTE_MS)
        so_far = [
            each.delta
            for each in updates
            if each.time_ms // (1440 * MINUTE_MS) == day and each.time_ms < minute.opened_ms + MINUTE_MS
        ]
        assert Decimal(repr(minute.bid_volume)) == exact([each.bid_volume for each in own])
        assert Decimal(repr(minute.ask_volume)) == exact([each.ask_volume for each in own])
        assert Decimal(repr(minute.delta)) == exact([each.delta for each in own])
        assert Decimal(repr(minute.cumulative_delta)) == exact(so_far)
        assert not own or minute.cumulative_delta == own[-1].cumulative_delta


@settings(max_examples=60)
@given(sequences, st.booleans(), st.data())
def test_restart_at_any_point_changes_no_minute(made: Made, has_sides: bool, data: st.DataObject) -> None:
    ticks = ticks_of(made)
    split = data.draw(st.integers(0, len(ticks)))
    before, after = OrderFlow(DIGITS), OrderFlow(DIGITS)
    for tick in ticks[:split]:
        before.take(tick, has_sides)
    kept = msgspec.convert(msgspec.to_builtins(before.state()), FlowState)

    after.restore(kept, ticks[split - 1].time_ms if split else 0)

    _, minutes = run(after, ticks[split:], has_sides)
    whole = run(OrderFlow(DIGITS), ticks, has_sides)[1]
    assert minutes == whole[len(whole) - len(minutes) :]


@given(sequences)
def test_what_follows_the_journal_comes_to_the_same(made: Made) -> None:
    first, successor = OrderFlow(DIGITS), OrderFlow(DIGITS)
    for number, tick in enumerate(ticks_of(made), 1):
        update = first.take(tick, True)
        record = TickAccepted("X", tick.bid, tick.ask, tick.time_ms, tick.volume, number)
        if update is not None:
            record.flow_seq, record.price = number, update.price
            record.bid_volume, record.ask_volume = update.bid_volume, update.ask_volume
            record.cumulative_delta = update.cumulative_delta
        successor.follow(record)

    opened_ms = tick.time_ms - tick.time_ms % MINUTE_MS
    assert successor.minute(opened_ms) == first.minute(opened_ms)
