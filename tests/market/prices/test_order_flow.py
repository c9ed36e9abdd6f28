"""Who pressed, by the taker's side or by the tick rule, and the sums of each minute."""

from __future__ import annotations

from decimal import Decimal
from itertools import zip_longest

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS
from market.engine.engine import Engine
from market.prices.order_flow import UNITS, FlowState, FlowUpdate, MinuteFlow, OrderFlow
from market.prices.quotes import Prices
from market.prices.records import Tick, TickAccepted
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS, ms

pytestmark = pytest.mark.services
DIGITS = 2
MIDNIGHT_MS, DAY_MS = ms("2026-11-19T00:00"), 1440 * MINUTE_MS
Made = list[tuple[int, int, int, int]]


def make_tick(
    bid: float = 100.0,
    ask: float = 100.1,
    volume: float = 0.0,
    side: int = 0,
    price: float | None = None,
    time_ms: int = NOON_MS,
) -> Tick:
    return Tick("X", bid, ask, time_ms, volume, side, price)


def trade(time_ms: int, volume: float = 1.0, side: int = 1) -> Tick:
    return make_tick(volume=volume, side=side, time_ms=time_ms)


def updates_of(ticks: list[Tick], has_sides: bool) -> list[FlowUpdate]:
    flow = OrderFlow(DIGITS)
    return [update for tick in ticks if (update := flow.take(tick, has_sides)) is not None]


def flow_of(*ticks: Tick) -> OrderFlow:
    flow = OrderFlow(DIGITS)
    for tick in ticks:
        flow.take(tick, True)
    return flow


@pytest.mark.parametrize(
    ("side", "price", "update"),
    [
        (1, 100.2, FlowUpdate(0.0, 0.25, 0.25, 0.25, 100.2, NOON_MS)),
        (-1, 99.9, FlowUpdate(0.25, 0.0, -0.25, -0.25, 99.9, NOON_MS)),
        # A trade without a price was made on the quote that it took.
        (1, None, FlowUpdate(0.0, 0.25, 0.25, 0.25, 100.1, NOON_MS)),
        (-1, None, FlowUpdate(0.25, 0.0, -0.25, -0.25, 100.0, NOON_MS)),
    ],
)
def test_buyer_counts_for_the_ask_and_seller_for_the_bid(
    side: int, price: float | None, update: FlowUpdate
) -> None:
    assert updates_of([make_tick(volume=0.25, side=side, price=price)], True) == [update]


@pytest.mark.parametrize("tick", [make_tick(), make_tick(volume=2.0), make_tick(side=1)])
def test_no_side_or_no_size_is_no_order_flow(tick: Tick) -> None:
    assert updates_of([tick], True) == []


@pytest.mark.parametrize(
    ("quotes", "sides"),
    [
        ([(1.0, 1.01), (1.1, 1.11), (1.2, 1.21), (1.1, 1.11)], [1, 1, -1]),
        # No side is known before the mid moves; then the last one holds while it stands.
        ([(1.0, 1.01), (1.0, 1.01), (0.9, 0.91), (0.9, 0.91)], [-1, -1]),
        ([(1.00, 1.02), (1.00, 1.03), (1.00, 1.02)], [1, -1]),
        # 1.1 + 1.3 and 1.0 + 1.4 differ in their last bit.
        ([(1.0, 1.2), (1.1, 1.3), (1.0, 1.4)], [1, 1]),
    ],
    ids=["follows the mid", "keeps its side", "the ask alone", "binary noise"],
)
def test_tick_rule_follows_the_mid(quotes: list[tuple[float, float]], sides: list[int]) -> None:
    assert [update.delta for update in updates_of([make_tick(*each) for each in quotes], False)] == sides


def test_tick_rule_gives_the_mid_and_counts_one_whatever_the_trade_says() -> None:
    ticks = [make_tick(), make_tick(100.2, 100.4, volume=7.0, side=-1, price=100.2)]
    assert updates_of(ticks, False) == [FlowUpdate(0.0, 1.0, 1.0, 1.0, 100.3, NOON_MS)]


def test_prices_are_rounded_to_the_digits() -> None:
    ticks = [make_tick(1.0, 1.01), make_tick(1.1, 1.234, volume=1.0, side=1, price=1.2341)]
    assert [updates_of(ticks, has_sides)[0].price for has_sides in (True, False)] == [1.23, 1.17]


def test_last_side_is_kept_over_midnight_and_the_running_sum_is_not() -> None:
    ticks = [make_tick(1.0, 1.1), make_tick(1.1, 1.2), make_tick(1.1, 1.2, time_ms=MIDNIGHT_MS)]
    assert [update.cumulative_delta for update in updates_of(ticks, False)] == [1, 1]


def test_minute_has_the_volume_of_each_side_and_the_running_sum_and_the_last_two_are_known() -> None:
    flow = flow_of(trade(NOON_MS, 2.5), trade(NOON_MS + 1, 0.25, -1), trade(NOON_MS + MINUTE_MS, 4))
    later_ms = NOON_MS + 3 * MINUTE_MS
    assert flow.minute(NOON_MS) == MinuteFlow(NOON_MS, 0.25, 2.5, 2.25, 0)
    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 4.0, 6.25, 0)
    assert flow.minute(later_ms) == MinuteFlow(later_ms, 0.0, 0.0, 6.25, 0)
    flow.take(trade(later_ms), True)
    quiet_ms = NOON_MS + 2 * MINUTE_MS
    assert flow.minute(quiet_ms) == MinuteFlow(quiet_ms, 0.0, 0.0, 6.25, 0)
    assert flow.minute(NOON_MS) is None


def test_running_sum_begins_again_at_midnight() -> None:
    flow = flow_of(trade(MIDNIGHT_MS - 1, 2.5))
    assert flow.minute(MIDNIGHT_MS) == MinuteFlow(MIDNIGHT_MS, 0.0, 0.0, 0.0, 0)
    flow.take(trade(MIDNIGHT_MS), True)
    sums = [flow.minute(time_ms) for time_ms in (MIDNIGHT_MS - MINUTE_MS, MIDNIGHT_MS)]
    assert [minute and minute.cumulative_delta for minute in sums] == [2.5, 1.0]


@pytest.mark.parametrize(
    ("ended_ms", "counted"), [(5_000, 1), (MINUTE_MS, 1), (0, 0), (MINUTE_MS + 5_000, 0)]
)
def test_absorption_belongs_to_the_minute_in_which_its_window_lies(ended_ms: int, counted: int) -> None:
    flow = flow_of(trade(NOON_MS))
    flow.note_absorption(NOON_MS + ended_ms)
    assert flow.minute(NOON_MS) == MinuteFlow(NOON_MS, 0.0, 1.0, 1.0, counted)


def test_delta_is_exact_to_the_last_digit() -> None:
    assert MinuteFlow(0, 0.1, 0.3, 0.0, 0).delta == 0.2


def test_what_the_version_before_kept_leaves_its_minute_unknown_and_not_the_next() -> None:
    flow = OrderFlow(DIGITS)
    flow.restore(FlowState(NOON_MS // DAY_MS, 250_000_000, 1, 20_000), NOON_MS + 30_000)
    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 0.0, 2.5, 0)
    flow.take(trade(NOON_MS + 40_000, 1.0), True)
    assert (flow.state().minute_ms, flow.minute(NOON_MS)) == (None, None)
    flow.take(trade(NOON_MS + MINUTE_MS, 1.0), True)
    assert flow.minute(NOON_MS) is None
    assert flow.minute(NOON_MS + MINUTE_MS) == MinuteFlow(NOON_MS + MINUTE_MS, 0.0, 1.0, 4.5, 0)


def test_the_version_before_can_read_what_is_kept() -> None:
    kept = msgspec.to_builtins(flow_of(trade(NOON_MS, 2.5)).state())
    before = {"day": NOON_MS // DAY_MS, "units": 250_000_000, "side": 0, "half_points": 0}
    assert {name: kept[name] for name in before} == before


steps = st.tuples(
    st.integers(0, 20_000) | st.integers(0, 5 * MINUTE_MS) | st.integers(0, DAY_MS),
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
        day = minute.opened_ms // DAY_MS
        so_far = [
            each.delta
            for each in updates
            if each.time_ms // DAY_MS == day and each.time_ms < minute.opened_ms + MINUTE_MS
        ]
        assert Decimal(repr(minute.bid_volume)) == exact([each.bid_volume for each in own])
        assert Decimal(repr(minute.ask_volume)) == exact([each.ask_volume for each in own])
        assert Decimal(repr(minute.delta)) == exact([each.delta for each in own])
        assert Decimal(repr(minute.cumulative_delta)) == exact(so_far)
        assert not own or minute.cumulative_delta == own[-1].cumulative_delta


@settings(max_examples=60)
@given(sequences, st.booleans(), st.data())
def test_restart_at_any_point_changes_nothing(made: Made, has_sides: bool, data: st.DataObject) -> None:
    ticks = ticks_of(made)
    split = data.draw(st.integers(0, len(ticks)))
    before, after = OrderFlow(DIGITS), OrderFlow(DIGITS)
    updates = [update for tick in ticks[:split] if (update := before.take(tick, has_sides)) is not None]
    kept = msgspec.convert(msgspec.to_builtins(before.state()), FlowState)

    after.restore(kept, ticks[split - 1].time_ms if split else 0)

    more, minutes = run(after, ticks[split:], has_sides)
    whole = run(OrderFlow(DIGITS), ticks, has_sides)
    assert updates + more == whole[0]
    assert minutes == whole[1][len(whole[1]) - len(minutes) :]


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


@pytest.mark.django_db
def test_running_sum_goes_on_after_another_engine_though_ticks_have_more_digits_than_are_told() -> None:
    make_instrument("EURUSD", source="push", digits=2)
    first, successor = Engine(Prices("bid")), Engine(Prices("bid"))
    bids = [1.0, 1.004, 1.012, 1.016, 1.024, 1.016, 1.024]
    for second, bid in enumerate(bids):
        at_ms = NOON_MS + second * 1000
        assert first.accept(Tick("EURUSD", bid, bid + 0.1, at_ms), at_ms) is None

    for record in first.records:
        successor.repeat(record, NOON_MS)

    states = [engine.instruments["EURUSD"].flow.state() for engine in (first, successor)]
    assert [state.units for state in states] == [4 * UNITS] * 2
    assert states[0].side == states[1].side
    after = Tick("EURUSD", 1.5, 1.6, NOON_MS + 9_000)
    assert [engine.accept(after, NOON_MS + 9_000) for engine in (first, successor)] == [None, None]
    told = [engine.records[-1] for engine in (first, successor)]
    assert isinstance(told[1], TickAccepted)
    assert told[0] == told[1]
    assert told[1].cumulative_delta == 5
