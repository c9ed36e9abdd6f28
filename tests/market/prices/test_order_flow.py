"""Who pressed, by the taker's side or by the tick rule."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from market.engine.engine import Engine
from market.prices.order_flow import UNITS, FlowUpdate, OrderFlow
from market.prices.quotes import Prices
from market.prices.records import Tick, TickAccepted
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS, ms

DIGITS = 2


def make_tick(bid: float = 100.0, ask: float = 100.1, time_ms: int = NOON_MS, **fields: Any) -> Tick:
    return Tick("X", bid, ask, time_ms, **fields)


def updates_of(ticks: list[Tick], has_sides: bool, flow: OrderFlow | None = None) -> list[FlowUpdate]:
    flow = flow or OrderFlow(DIGITS)
    made = [flow.take(tick, has_sides) for tick in ticks]
    return [update for update in made if update is not None]


def sides_by_mid(*mids: float) -> list[float]:
    """Of ticks a hundredth wide, by the tick rule."""
    return [update.delta for update in updates_of([make_tick(mid, mid + 0.01) for mid in mids], False)]


def test_buyer_counts_for_the_ask() -> None:
    flow = updates_of([make_tick(volume=0.25, side=1, price=100.1)], True)

    assert flow == [FlowUpdate(0.0, 0.25, 0.25, 0.25, 100.1, NOON_MS)]


def test_seller_counts_for_the_bid() -> None:
    flow = updates_of([make_tick(volume=0.25, side=-1, price=100.0)], True)

    assert flow == [FlowUpdate(0.25, 0.0, -0.25, -0.25, 100.0, NOON_MS)]


@pytest.mark.parametrize(("side", "price"), [(1, 100.1), (-1, 100.0)])
def test_trade_without_a_price_was_made_on_the_quote_it_took(side: int, price: float) -> None:
    (update,) = updates_of([make_tick(volume=1, side=side)], True)

    assert update.price == price


@pytest.mark.parametrize("tick", [make_tick(), make_tick(volume=2.0), make_tick(side=1)])
def test_no_side_or_no_size_is_no_order_flow(tick: Tick) -> None:
    assert updates_of([tick], True) == []


def test_tick_rule_follows_the_mid() -> None:
    assert sides_by_mid(1.0, 1.1, 1.2, 1.1) == [1, 1, -1]


def test_tick_rule_knows_no_side_before_the_mid_moves() -> None:
    assert sides_by_mid(1.0, 1.0, 1.0, 0.9) == [-1]


def test_tick_rule_keeps_the_last_side_while_the_mid_stands() -> None:
    assert sides_by_mid(1.0, 1.1, 1.1, 1.1) == [1, 1, 1]


def test_tick_rule_sees_the_ask_alone_move() -> None:
    ticks = [make_tick(1.00, 1.02), make_tick(1.00, 1.03), make_tick(1.00, 1.02)]

    assert [update.delta for update in updates_of(ticks, False)] == [1, -1]


def test_mids_that_differ_in_binary_only_are_the_same() -> None:
    """1.1 + 1.3 and 1.0 + 1.4 differ in their last bit."""
    ticks = [make_tick(1.0, 1.2), make_tick(1.1, 1.3), make_tick(1.0, 1.4)]

    assert [update.delta for update in updates_of(ticks, False)] == [1, 1]


def test_tick_rule_gives_the_mid_and_counts_one_whatever_the_trade_says() -> None:
    ticks = [make_tick(), make_tick(100.2, 100.4, volume=7.0, side=-1, price=100.2)]

    assert updates_of(ticks, False) == [FlowUpdate(0.0, 1.0, 1.0, 1.0, 100.3, NOON_MS)]


def test_prices_are_rounded_to_the_digits() -> None:
    ticks = [make_tick(1.0, 1.01), make_tick(1.1, 1.234, volume=1.0, side=1, price=1.2341)]

    assert updates_of(ticks, True)[0].price == 1.23
    assert updates_of(ticks, False)[0].price == 1.17


def test_cumulative_delta_begins_again_at_midnight() -> None:
    at = [ms("2026-11-18T23:59:59") + 999, ms("2026-11-19"), ms("2026-11-19") + 1]
    flow = updates_of([make_tick(time_ms=time_ms, volume=1, side=1) for time_ms in at], True)

    assert [update.cumulative_delta for update in flow] == [1, 1, 2]


def test_last_side_is_kept_over_midnight() -> None:
    ticks = [make_tick(1.0, 1.1), make_tick(1.1, 1.2), make_tick(1.1, 1.2, ms("2026-11-19"))]

    assert [update.cumulative_delta for update in updates_of(ticks, False)] == [1, 1]


sizes = st.integers(1, 10**13).map(lambda units: units / 10**8)
trades = st.lists(st.tuples(sizes, st.sampled_from([-1, 1])), min_size=1, max_size=60)


@given(trades)
def test_published_deltas_add_up_to_the_last_digit(made: list[tuple[float, int]]) -> None:
    flow = updates_of([make_tick(volume=size, side=side) for size, side in made], True)

    total = sum((Decimal(repr(update.delta)) for update in flow), Decimal())
    assert Decimal(repr(flow[-1].cumulative_delta)) == total
    assert all(update.delta == update.ask_volume - update.bid_volume for update in flow)


steps = st.tuples(
    st.integers(0, 40_000_000), st.integers(99, 102), st.integers(0, 2), st.sampled_from([-1, 0, 1])
)


@settings(max_examples=60)
@given(st.lists(steps, min_size=1, max_size=30), st.booleans(), st.data())
def test_restart_at_any_point_changes_nothing(
    made: list[tuple[int, int, int, int]], has_sides: bool, data: st.DataObject
) -> None:
    ticks, at_ms = [], NOON_MS
    for gap_ms, bid, spread, side in made:
        at_ms += gap_ms
        ticks.append(make_tick(bid, bid + spread, at_ms, volume=0.1, side=side))
    split = data.draw(st.integers(0, len(ticks)))
    before, after = OrderFlow(DIGITS), OrderFlow(DIGITS)
    parts = updates_of(ticks[:split], has_sides, before)

    after.restore(before.state())

    assert parts + updates_of(ticks[split:], has_sides, after) == updates_of(ticks, has_sides)


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
