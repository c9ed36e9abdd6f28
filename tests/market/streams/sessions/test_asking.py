"""Sockets that all come at once, as after a restart."""

from __future__ import annotations

import asyncio

import pytest

from accounts.keys.cache import ApiKeyCache
from core.events.event_feed import EventFeed
from core.threads import MAX_WAITING
from market.streams.sessions.authenticated import AuthenticatedSessions
from tests.core.events.following import follow
from tests.factories import make_key

pytestmark = pytest.mark.usefixtures("transactional_db")


async def test_more_than_the_database_has_room_for_wait_for_each_other() -> None:
    key = await asyncio.to_thread(make_key)
    feed = EventFeed()
    await feed.start()
    cache = ApiKeyCache(feed)
    sockets = AuthenticatedSessions(cache)
    follow(feed, cache, sockets)

    found = await asyncio.gather(*(sockets.find(key) for _ in range(4 * MAX_WAITING)))

    await feed.stop()
    assert None not in found
    assert len(found) == 4 * MAX_WAITING
