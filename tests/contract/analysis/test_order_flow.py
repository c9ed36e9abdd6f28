"""Order flow reaches an analysis from the ticks themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client import Api, Server
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_instrument


@pytest.fixture
def tick(server: Server) -> Iterator[Ticker]:
    with ticking(server) as ticker:
        yield ticker


def test_ticks_are_the_order_flow_of_an_analysis(api: Api, tick: Ticker) -> None:
    make_instrument("EURUSD")
    tick("EURUSD", 12)

    body = api.ask("/api/analysis/EURUSD").json()

    flow = next(driver for driver in body["drivers"] if driver["name"] == "order_flow")
    assert flow["available"]
    assert flow["evidence"]["source"] == "tick_rule"
    assert [window["count"] for window in flow["evidence"]["windows"]] == [11, 11, 11]
    assert flow["evidence"]["cumulative_delta"] == flow["evidence"]["windows"][-1]["delta"]
    assert body["as_of"]["order_flow"] == body["as_of"]["quote"]
