"""A source whose data may not be handed on: nobody gets any, and the engine goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from instruments.models import WithheldSource
from instruments.saving import hand_on_again, withhold
from market import runtime as market
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.contract.streams.client import MARKET, ORDERFLOW
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.patience import wait_until

from .test_deactivated import ended


@pytest.fixture
def push(service: Server) -> Iterator[WithheldSource]:
    """What these tests tick with; afterwards it is handed on again."""
    yield WithheldSource(name="push", why="Its terms forbid it.")
    hand_on_again(WithheldSource.objects.all(), by="test")


def test_nobody_gets_its_data_and_the_engine_goes_on(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str, push: WithheldSource
) -> None:
    ticker(symbol)
    named, everything = opened(MARKET, key=key), opened(ORDERFLOW, key=key)
    named.subscribe(symbol)
    everything.subscribe()
    with Api(service, key) as api:
        quote = f"/api/market/{symbol}/quote"
        assert api.ask(quote).status_code == 200
        withhold(push, by="test")
        assert ended(named) == [symbol]
        wait_until(lambda: api.ask(quote).status_code == 404)
        for path in (quote, f"/api/market/{symbol}", f"/api/analysis/{symbol}"):
            assert "terms of its source" in refusal(api.ask(path), 404, "symbol_not_found", field="symbol")
        assert symbol not in api.ask("/api/symbols").text
        tick = ticker(symbol, 3)[-1]
        known = market.quote(symbol)
        assert known is not None
        assert known.bid == tick.bid
        assert symbol in ended(everything)
        # A question's answer comes next: of the three ticks nobody was sent one.
        assert everything.ask({"action": "list"})["type"] == "subscriptions"
        for path in (MARKET, ORDERFLOW):
            assert symbol in [each["symbol"] for each in opened(path, key=key).subscribe(symbol)["rejected"]]
        # Neither one who asks for all and what was sent last of it.
        late = opened(ORDERFLOW, key=key)
        positions = late.subscribe(features=["seq", "snapshot"])["positions"]
        assert symbol not in positions
        hand_on_again([push], by="test")
        wait_until(lambda: api.ask(quote).status_code == 200)
    assert named.subscribe(symbol)["symbols"] == [symbol]
