"""What is shown of an open stream besides its path: by which key, from where, and what it follows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis import Redis

from accounts.open_streams.registry import OpenStreams
from accounts.open_streams.stream_slots import SharedDetails, Slot, StreamDetails

from .claims import MARKET, claimed, started, until


class Follower:
    """A socket that follows what it is told."""

    def __init__(self, *symbols: str) -> None:
        self.symbols = list(symbols)

    def describe(self) -> StreamDetails:
        return StreamDetails(7, "192.0.2.1", "tickwire-python/1.0", list(self.symbols))

    async def claim(self, streams: OpenStreams, account: int = 1) -> Slot:
        return await claimed(streams, account, MARKET, describe=self.describe)


async def details(streams: OpenStreams, account: str = "1") -> list[StreamDetails | None]:
    return [stream.details for stream in await streams.of(account)]


@pytest.mark.usefixtures("alone")
async def test_alone_they_are_what_the_socket_says_now() -> None:
    streams, follower = OpenStreams(), Follower("EURUSD")
    slot = await follower.claim(streams)
    follower.symbols.append("XAUUSD")
    streams.note_change(slot)
    # One that says nothing of itself is listed as well.
    await claimed(streams)
    told = StreamDetails(7, "192.0.2.1", "tickwire-python/1.0", ["EURUSD", "XAUUSD"])
    assert await details(streams) == [told, None]


async def shows(streams: OpenStreams, *symbols: str) -> bool:
    return [each and each.symbols for each in await details(streams)] == [list(symbols)]


async def test_another_process_shows_them_and_what_changes(shared: str, fast: None) -> None:
    async with started() as here, started() as there:
        follower = Follower("EURUSD")
        slot = await follower.claim(here)
        await until(lambda: shows(there, "EURUSD"))
        follower.symbols.append("XAUUSD")
        here.note_change(slot)
        await until(lambda: shows(there, "EURUSD", "XAUUSD"))
        (shown,) = await details(there)
        assert shown is not None
        assert (shown.key_id, shown.address, shown.agent) == (7, "192.0.2.1", "tickwire-python/1.0")
    assert await is_empty(shared)


async def test_an_ended_stream_leaves_nothing_behind(shared: str, fast: None) -> None:
    async with started() as here:
        slot = await Follower("EURUSD").claim(here)
        await until(lambda: shows(here, "EURUSD"))
        slot.release()
        await until(lambda: is_empty(shared))


async def test_what_redis_lost_is_told_again(shared: str, fast: None) -> None:
    async with started() as here:
        await Follower("EURUSD").claim(here)
        await until(lambda: shows(here, "EURUSD"))
        with Redis.from_url(shared) as client:
            client.delete(*client.keys("tickwire:streams:details:*"))
        await until(lambda: shows(here, "EURUSD"))


async def is_empty(url: str) -> bool:
    def look() -> Any:
        with Redis.from_url(url) as client:
            return client.keys("tickwire:streams:details:*")

    return not await asyncio.to_thread(look)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedDetails, "WRITE_EVERY_S", 0.05)
    monkeypatch.setattr(SharedDetails, "RENEW_EVERY_S", 0.0)
