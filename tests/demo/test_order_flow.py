"""The demo's past has order flow, and the engine's goes on where it ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.times import MINUTE_MS
from demo.market import seed_recent
from market.models import LastQuote
from market.prices.order_flow import FlowState, OrderFlow
from market.simulated_past import FLOW_MINUTES, flows_of, older_rows
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


def test_older_minutes_have_it_from_a_midnight_on() -> None:
    facts = make_facts()

    flows = flows_of(facts, older_rows(facts, ms("2026-11-18T00:00")))

    assert FLOW_MINUTES <= len(flows) < FLOW_MINUTES + 24 * 60
    first = flows[0].minute
    assert first.opened_ms % (24 * 60 * MINUTE_MS) == 0
    assert first.cumulative_delta == first.delta
