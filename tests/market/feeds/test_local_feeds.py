"""What the feeds without a venue have in common with those that have one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pytest_django import Settings

from instruments.catalogue import catalogue
from market.engine.engine import Engine
from market.engine.feeds import registry
from market.engine.feeds.feed import MarketFeed
from market.engine.feeds.supervisor import EngineReceiver
from market.prices.quotes import Prices
from market.prices.records import TickAccepted
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S

from .receivers import RecordingReceiver, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("transactional_db")]
TICKS = 50


class CountingReceiver(EngineReceiver):
    """The engine's own receiver, and what it let in."""

    def __init__(self, engine: Engine, name: str) -> None:
        super().__init__(engine, name, ["EURUSD"], self._publish)
        self.feed_state = engine.feed_state(name)
        self.taken: list[TickAccepted] = []
        self.has_enough = asyncio.Event()
        self._records = engine.records

    def _publish(self) -> None:
        self.taken += [record for record in self._records if isinstance(record, TickAccepted)]
        self._records.clear()
        if len(self.taken) >= TICKS:
            self.has_enough.set()


@pytest.fixture(params=["demo", "replay"])
def name(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> str:
    """A feed that prices an instrument; among the lines that are replayed are a crossed and an old one."""
    lines = [f"{NOON_MS + n * 1000},1.08{n:03},1.08{n + 2:03}" for n in range(TICKS)]
    lines[20:20] = [f"{NOON_MS + 19_500},1.09,1.08", f"{NOON_MS + 5_000},1.07,1.071"]
    tmp_path.joinpath("EURUSD.csv").write_text("\n".join(["timestamp,bid,ask", *lines, ""]))
    settings.REPLAY_DIR, settings.REPLAY_SPEED = tmp_path, 1000.0
    settings.DEMO_RATE = 200.0
    make_instrument("EURUSD", source=request.param)
    return str(request.param)


def make_feed(name: str) -> MarketFeed:
    return registry.make_feed(name, catalogue.active())


async def test_time_is_monotonic_and_no_quote_crossed_in_what_the_engine_lets_in(name: str) -> None:
    receiver = CountingReceiver(Engine(Prices("bid")), name)

    feeding = asyncio.create_task(make_feed(name).run(receiver))
    async with asyncio.timeout(PATIENCE_S):
        await receiver.has_enough.wait()
    feeding.cancel()
    await asyncio.wait([feeding])

    times = [taken.time_ms for taken in receiver.taken]
    assert times == sorted(times)
    assert all(0 < taken.bid <= taken.ask for taken in receiver.taken)
    assert receiver.feed_state.refused == ({"crossed": 1, "older_than_last": 1} if name == "replay" else {})


async def test_cancelled_feed_leaves_nothing_running(name: str, settings: Settings) -> None:
    settings.REPLAY_SPEED = 1.0
    receiver, before = RecordingReceiver(), asyncio.all_tasks()

    async with running(make_feed(name), receiver) as task:
        await receiver.until_ticks(1)

    assert task.cancelled()
    assert asyncio.all_tasks() == before
    assert receiver.losses == []
