"""Installations with different prefixes share a Redis and hear nothing of each other."""

from __future__ import annotations

from typing import Any

from redis import Redis

from accounts.limits.redis_window import RedisWindow
from accounts.open_streams.redis_slots import RedisSlots
from accounts.open_streams.stream_slots import MemorySlots, OpenStream, Slot
from core.events.outbox import channel_of


async def admitted(url: str) -> int:
    """Of three requests, where two are allowed."""
    window = RedisWindow(url)
    standings = [await window.ask("account:1", 2, 1) for _ in range(3)]
    await window.close()
    return sum(standing.admitted for standing in standings)


async def opened(url: str) -> bool:
    """Whether an account with one stream gets it."""
    slots = RedisSlots(url, MemorySlots())
    await slots.start()
    slot = Slot(OpenStream("1", "/ws/market", 0.0), 1, lambda code: None, lambda slot: None)
    is_open = await slots.claim(slot, takeover=False) is None
    others = await slots.ask("count")
    await slots.stop()
    return is_open and others == 1


async def test_limits_and_slots_are_counted_apart(shared: str, settings: Any) -> None:
    for prefix in ("eu", "us"):
        settings.REDIS_PREFIX = prefix
        assert await admitted(shared) == 2
        assert await opened(shared)
    assert await admitted(shared) == 0
    with Redis.from_url(shared) as client:
        names: Any = client.keys("*")
    assert {name.partition(b":")[0] for name in names} == {b"eu", b"us"}


def test_control_events_are_published_apart(settings: Any) -> None:
    settings.REDIS_PREFIX = "eu"
    assert channel_of("redis://127.0.0.1/3") == "eu:control-events:3"
