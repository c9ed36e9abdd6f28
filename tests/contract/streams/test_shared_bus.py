"""Where the engine is another process: what clients see when the bus between them loses its place."""

from __future__ import annotations

import redis
from django.conf import settings

from .conftest import Open
from .ticker import Ticker


def test_bus_that_comes_back_empty_costs_no_client_a_tick(
    opened: Open, ticker: Ticker, key: str, symbol: str
) -> None:
    ticker(symbol)
    socket = opened(key=key)
    before = socket.subscribe(symbol, features=["seq"])["epoch"]
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushdb()
    ticker(symbol)
    ticker(symbol)
    assert [socket.hear()["seq"], socket.hear()["seq"]] == [2, 3]
    assert ticker.runner.bus.journal_position.epoch == before
