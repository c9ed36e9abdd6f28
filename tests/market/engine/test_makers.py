"""Who made a price, as each tick that was let in says it."""

from __future__ import annotations

import asyncio
import json

import pytest
from pytest_django import Settings

from core.threads import in_thread
from market.engine.engine import Engine
from market.engine.feeds.feed import FeedReceiver
from market.engine.feeds.supervisor import is_moved
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, Tick, TickAccepted
from market.push import intake
from market.push.keys import PushSource, ingest_key_cache, issue_ingest_key
from tests.factories import make_instrument
from tests.market.running import make_runner
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]


async def test_pushed_tick_names_its_key_and_not_one_that_shares_its_name() -> None:
    await in_thread(make_instrument, "EURUSD", source="push:desk")
    issued = [await in_thread(issue_ingest_key, "desk", by="test") for _ in range(2)]
    engine = Engine(Prices("bid"))

    async def push(origin: str, ticks: list[Tick], sent_ms: int, key: str) -> list[str | None]:
        return engine.take(origin, ticks, sent_ms, key)

    async def send(source: PushSource, time_ms: int) -> None:
        message = json.dumps({"symbol": "EURUSD", "bid": 1.08, "ask": 1.0802, "time": time_ms})
        assert (await intake.take(source, intake.read(message.encode()), push)).accepted == 1

    for number, (_, secret) in enumerate(issued):
        source = await ingest_key_cache.ask(secret, ingest_key_cache.digest(secret))
        assert source is not None
        await send(source, NOON_MS + number)
    # The version before does not say which key it was.
    engine.take("push:desk", [Tick("EURUSD", 1.08, 1.0802, NOON_MS + 2)], NOON_MS + 2)

    feeds = [record.feed for record in engine.records if isinstance(record, TickAccepted)]
    assert feeds == [*(f"push:{key.prefix}" for key, _ in issued), "push"]


class OneTick:
    async def run(self, receiver: FeedReceiver) -> None:
        receiver.take([Tick("EURUSD", 1.08, 1.0802, NOON_MS)])
        await asyncio.Event().wait()


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("source", "url", "expected"),
    [
        ("kraken:EUR/USD", "wss://ws.kraken.com/v2", ("kraken", False)),
        ("kraken", "wss://elsewhere.example/v2", ("kraken:moved", True)),
        ("demo", "wss://elsewhere.example/v2", ("demo", False)),
    ],
)
async def test_tick_of_a_venue_says_if_it_came_from_elsewhere(
    settings: Settings, source: str, url: str, expected: tuple[str, bool]
) -> None:
    settings.KRAKEN_WS_URL = url
    await in_thread(make_instrument, "EURUSD", source=source)
    heard: asyncio.Future[TickAccepted] = asyncio.get_running_loop().create_future()

    def hear(records: list[AnyRecord]) -> None:
        for record in records:
            if isinstance(record, TickAccepted) and not heard.done():
                heard.set_result(record)

    runner = make_runner(Engine(Prices("bid")), lambda name, instruments: OneTick(), hear)
    await runner.start()
    tick = await asyncio.wait_for(heard, PATIENCE_S)
    await runner.stop()
    assert (tick.feed, tick.is_moved) == expected


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        ({"KRAKEN_WS_URL": "wss://ws.kraken.com/v2/"}, []),
        ({"KRAKEN_REST_URL": "https://api.kraken.com.example"}, ["kraken"]),
        ({"BINANCE_WS_URL": "wss://data-stream.binance.vision.example"}, ["binance"]),
        ({"OANDA_STREAM_URL": "https://stream-fxtrade.oanda.com"}, []),
        ({"OANDA_STREAM_URL": "http://stream-fxtrade.oanda.com"}, ["oanda"]),
    ],
)
def test_a_venue_is_at_one_of_its_own_addresses_or_elsewhere(
    settings: Settings, changes: dict[str, str], moved: list[str]
) -> None:
    for name, url in changes.items():
        setattr(settings, name, url)
    assert [feed for feed in ("kraken", "binance", "oanda", "demo", "push:desk") if is_moved(feed)] == moved
