"""What the service publishes of its streams."""

from __future__ import annotations

from market.streams import market_streams as streams

from .conftest import Open
from .ticker import Ticker


def test_each_write_of_a_tick_is_measured(opened: Open, ticker: Ticker, key: str, symbol: str) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol)
    before = streams.prices.hub.latency.count

    for _ in range(3):
        ticker(symbol)
        socket.hear()
    assert socket.is_open

    assert streams.prices.hub.latency.count - before == 3


def test_closed_sockets_are_counted_by_their_code(opened: Open, symbol: str) -> None:
    before = streams.prices.hub.closed[4401]
    socket = opened()
    socket.send({"action": "subscribe", "symbols": [symbol], "api_key": "no-such-key"})
    socket.hear()

    assert socket.closed == 4401
    assert streams.prices.hub.closed[4401] == before + 1
