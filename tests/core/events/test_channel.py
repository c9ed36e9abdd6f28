"""Control events over a Redis that others use as well."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.background import cancel_and_wait
from core.events import channel
from core.events.channel import EventMessage
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from tests.patience import PATIENCE_S

from .test_feed import Listener, publish

pytestmark = pytest.mark.usefixtures("transactional_db")


async def test_an_event_of_another_database_takes_the_place_of_none(shared: str) -> None:
    feed, foreign, ours = EventFeed(), Listener(), Listener()
    feed.on(EventKind.CANDLES_IMPORTED, foreign)
    feed.on(EventKind.INSTRUMENTS_CHANGED, ours)
    await feed.start()
    newest = await in_thread(ControlEvent.objects.newest)
    place = newest.position + 1 if newest else 1
    while not foreign.heard:
        channel.tell(EventMessage(place, EventKind.CANDLES_IMPORTED, {"number": 1}))
        await asyncio.sleep(0.05)
    await publish(2)
    heard = await ours.hears(1)
    await feed.stop()

    assert heard == [2]


async def test_installations_in_two_databases_of_one_redis_do_not_hear_each_other(
    shared: str, settings: Any
) -> None:
    lines = [Line(shared), Line(shared[:-1] + "1")]
    listening = [asyncio.create_task(line.listener.listen(line.url)) for line in lines]
    await asyncio.wait_for(asyncio.gather(*(line.hears.wait() for line in lines)), PATIENCE_S)
    for position, line in enumerate(lines, 1):
        line.hears.clear()
        settings.REDIS_URL = line.url
        channel.tell(EventMessage(position, EventKind.INSTRUMENTS_CHANGED))
    await asyncio.wait_for(asyncio.gather(*(line.hears.wait() for line in lines)), PATIENCE_S)
    await cancel_and_wait(*listening)

    # Each heard a reason to look as soon as it was connected.
    assert [line.positions for line in lines] == [[0, 1], [0, 2]]


class Line:
    """What an installation in this database hears."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.positions: list[int] = []
        self.hears = asyncio.Event()
        self.listener = channel.ChannelListener(self._hear)

    def _hear(self, told: EventMessage) -> None:
        self.positions.append(told.position)
        self.hears.set()
