"""What clients hear when the service ends, and what they find when it is back."""

from __future__ import annotations

import pytest

from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket, told
from tests.contract.streams.conftest import make_server
from tests.contract.streams.ticker import ticking
from tests.factories import make_account, make_instrument, make_key, make_tier


@pytest.fixture
def key(server: Server) -> str:
    return make_key(make_account(tier=make_tier("roomy")))


def test_restart_is_announced_and_closes_with_1012(server: Server, key: str) -> None:
    symbol = make_instrument("EURUSD").symbol
    subscribed, fresh = Socket(server, ORDERFLOW, key=key), Socket(server, MARKET)
    subscribed.subscribe(symbol)
    server.stop()
    for socket in (subscribed, fresh):
        assert told(socket.hear()) == {"type": "notice", "code": "restarting"}
        assert socket.closed == 1012


def test_last_tick_is_known_after_a_restart(server: Server, key: str) -> None:
    symbol = make_instrument("EURUSD").symbol
    with ticking(server) as ticker:
        tick = ticker(symbol, 3)[-1]
    server.stop()
    with make_server() as again, Socket(again, key=key) as socket:
        reply = socket.subscribe(symbol, features=["seq", "snapshot"])
        heard = socket.hear()
    assert reply["positions"] == {symbol: 3}
    assert (heard["bid"], heard["time"], heard["seq"], heard["volume"]) == (tick.bid, tick.time_ms, 3, 1.0)
