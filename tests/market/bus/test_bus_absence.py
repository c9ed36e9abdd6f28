"""What a web process says while no engine is heard."""

from __future__ import annotations

import asyncio

import pytest
from redis import Redis

from market.engine.bus.bus_reader import BusReader
from market.engine.bus.price_follower import BusListener
from market.prices.quotes import Prices
from tests.factories import make_instrument
from tests.patience import until

from .test_bus import client, opened, publish, url

__all__ = ["client", "url"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]


def test_absence_of_an_engine_is_told_once_and_its_return_too(
    url: str, client: Redis, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.engine.bus.bus_reader.BLOCK_MS", 50)
    make_instrument("EURUSD")

    def told(what: str) -> int:
        return sum(what in record.message for record in caplog.records)

    async def come_late() -> None:
        listener = BusListener(
            lambda records: None,
            lambda symbol, records, came_ms: None,
            lambda epoch, checkpoints: None,
            set,
        )
        reader = BusReader(url, Prices("bid"), listener, quiet_s=0.1)
        await reader.start()
        await until(lambda: told("No market engine is heard") > 0)
        bus = await opened(url)
        await publish(bus, 1, 3)
        await until(lambda: told("heard again") > 0)
        await bus.close()
        await reader.stop()

    with caplog.at_level("INFO", "market.engine.bus.bus_reader"):
        asyncio.run(come_late())

    assert (told("No market engine is heard"), told("heard again")) == (1, 1)
