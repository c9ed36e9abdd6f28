from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.events.event_feed import EventFeed
from core.events.outbox import readers


@pytest.fixture
async def feed(monkeypatch: pytest.MonkeyPatch, settings: Any) -> AsyncIterator[EventFeed]:
    """It reads when it is asked to, and at no other time: neither what commits nor Redis wakes it."""
    settings.REDIS_URL = ""
    monkeypatch.setattr("core.events.event_feed.POLL_S", 3600)
    running = EventFeed()
    monkeypatch.setattr(running, "STALE_AFTER_S", 3600)
    await running.start()
    readers.discard(running.look_now)
    yield running
    await running.stop()
