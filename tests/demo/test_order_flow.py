"""The demo's past has order flow, and the engine's goes on where it ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.times import MINUTE_MS
from demo.market import seed_recent
from demo.past import make_past
from instruments.catalogue import catalogue
from market.models import LastQuote, UnfinishedPast
from market.prices.order_flow import FlowState, OrderFlow
from market.simulated_past import FLOW_MINUTES, older_flows, older_rows
from market.store import read_flows
from tests.factories import make_instrument
from tests.market.ticking import make_facts, ms

pytestmark = pytest.mark.django_db
NOW_MS = ms("2026-11-18T12:00")


def test_running_sum_of_the_day_goes_on_in_the_engine(settings: Any) -> None:
    settings.DEMO = True
    bitcoin = make_instrument("BTCUSD", type="crypto", volume_kind="traded", order_flow_source="trades")
    seed_recent(NOW_MS, lambda text: None)
    *_, before, last = read_flows(bitcoin.pk, 500)
    assert last.opened_ms == NOW_MS - MINUTE_MS
    assert last.cumulative_delta == pytest.approx(before.cumulative_delta + last.delta)
    flow = OrderFlow(5)
    flow.restore(msgspec.convert(LastQuote.objects.get(pk=bitcoin.pk).flow_state, FlowState))
    assert flow.minute(last.opened_ms) == last


@pytest.mark.parametrize("clock", ["00:01", "12:00", "23:30"])
def test_day_has_no_hole_whenever_the_demo_begins(settings: Any, clock: str) -> None:
    settings.DEMO = True
    bitcoin = make_instrument("BTCUSD", type="crypto", volume_kind="traded", order_flow_source="trades")
    now_ms = ms(f"2026-11-18T{clock}")
    seed_recent(now_ms, lambda text: None)
    (past,) = UnfinishedPast.objects.all()
    make_past(catalogue.get("BTCUSD"), past)
    opened = [flow.opened_ms for flow in read_flows(bitcoin.pk, 10_000)]
    assert opened == list(range(opened[0], now_ms, MINUTE_MS))
    assert opened[0] < now_ms - 24 * 60 * MINUTE_MS


def test_older_minutes_have_it_from_a_midnight_on() -> None:
    facts = make_facts()
    flows = older_flows(facts, older_rows(facts, ms("2026-11-18T00:00")))
    assert FLOW_MINUTES <= len(flows) < FLOW_MINUTES + 24 * 60
    first = flows[0].minute
    assert first.opened_ms % (24 * 60 * MINUTE_MS) == 0
    assert first.cumulative_delta == first.delta
