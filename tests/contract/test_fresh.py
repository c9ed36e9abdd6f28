"""What needs a service of its own, just started and with nothing in it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from time_machine import Traveller

from core.times import epoch_ms
from tests.client import Api, Server
from tests.factories import NOON, make_instrument

from .answers import refusal
from .market.stored_minutes import minutes, store
from .streams.ticker import ticking

pytestmark = pytest.mark.services


def test_fresh_service_has_nothing_in_it_and_counts_its_seconds(clock: Traveller, api: Api) -> None:
    for path, body in (
        ("/api/symbols", {"items": [], "count": 0}),
        ("/api/signals?status=all", {"items": [], "count": 0}),
        ("/api/news", {"items": []}),
    ):
        assert api.ask(path).json() == body
    message = refusal(api.ask("/api/market/EURUSD"), 404, "symbol_not_found", field="symbol")
    assert "Did you mean" not in message
    at_first = api.ask("/api/session").json()["uptime_seconds"]
    clock.shift(90.9)
    assert (at_first, api.ask("/api/session").json()["uptime_seconds"]) == (0, 90)


def test_walk_without_an_end_goes_up_to_the_moment_it_began(clock: Traveller, api: Api) -> None:
    make_instrument("EURUSD")
    store("EURUSD", minutes(20, from_ms=epoch_ms(NOON)))
    clock.move_to(NOON + timedelta(minutes=10))
    first = api.ask("/api/market/EURUSD/history?limit=4").json()
    clock.move_to(NOON + timedelta(minutes=30))
    rest = api.ask(f"/api/market/EURUSD/history?limit=100&cursor={first['next']}").json()
    assert (first["count"], rest["count"], rest["next"]) == (4, 6, None)
    assert api.ask("/api/market/EURUSD/history?limit=100").json()["count"] == 20


def test_ticks_are_the_order_flow_of_an_analysis(api: Api, server: Server) -> None:
    make_instrument("EURUSD")
    with ticking(server) as tick:
        tick("EURUSD", 12)
        body = api.ask("/api/analysis/EURUSD").json()
    (flow,) = (driver for driver in body["drivers"] if driver["name"] == "order_flow")
    assert flow["available"]
    assert flow["evidence"]["source"] == "tick_rule"
    assert [window["count"] for window in flow["evidence"]["windows"]] == [11, 11, 11]
    assert flow["evidence"]["cumulative_delta"] == flow["evidence"]["windows"][-1]["delta"]
    assert body["as_of"]["order_flow"] == body["as_of"]["quote"]
