"""What only a fault or bad luck in time brings about, on a socket without a server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.db import OperationalError

from accounts.keys.cache import ApiKeyCache, key_cache
from accounts.keys.caller import Allowances, Caller
from core.events.event_feed import EventFeed
from market.streams.market_streams import MarketConsumer, prices
from market.streams.protocol.messages import AnyMessage
from market.streams.sessions.authenticated import AuthenticatedSessions, Identity
from tests.patience import PATIENCE_S

SCOPE = {"type": "websocket", "path": "/ws/market", "headers": [(b"host", b"127.0.0.1")]}
PING = {"type": "websocket.receive", "text": '{"action":"ping"}'}
CALLER = Caller(1, 1, "alice", Allowances(tier="pro", requests=120, streams=5, ai_calls=20), None, False, "1")


class Talk:
    """The server's side of a socket: what the client says, and what it is told."""

    def __init__(self, *says: dict[str, Any]) -> None:
        self._says = asyncio.Queue[dict[str, Any]]()
        for event in ({"type": "websocket.connect"}, *says):
            self._says.put_nowait(event)
        self.told: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        return await self._says.get()

    async def send(self, event: dict[str, Any]) -> None:
        self.told.append(event)
        if event["type"] == "websocket.close":
            self._says.put_nowait({"type": "websocket.disconnect", "code": event["code"]})

    async def run(self, consumer: type[MarketConsumer]) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE_S):
            await consumer()(dict(SCOPE), self.receive, self.send)
        return self.told


class Faulty(MarketConsumer):
    fault: Exception = ZeroDivisionError()

    async def take(self, message: AnyMessage) -> None:
        raise self.fault


class Away(Faulty):
    fault = OperationalError("the database is away")


@pytest.mark.parametrize(("consumer", "is_ours"), [(Faulty, True), (Away, False)])
async def test_fault_ends_the_socket_with_4500(
    consumer: type[MarketConsumer], is_ours: bool, caplog: pytest.LogCaptureFixture
) -> None:
    _, told, closed = await Talk(PING, PING).run(consumer)
    error = json.loads(told["text"])
    assert (error["error"]["code"], error["fatal"], error["retry"]) == ("internal_error", True, True)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4500)
    assert [
        record.exc_info is not None for record in caplog.records if record.levelno >= logging.WARNING
    ] == [is_ours]


async def test_socket_that_is_cancelled_leaves_nothing_behind() -> None:
    talk = Talk()
    running = asyncio.create_task(talk.run(MarketConsumer))
    while prices.hub.members != 1:  # noqa: ASYNC110 - it joins in its own time
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert prices.hub.members == 0


async def test_client_that_goes_at_once_leaves_nothing_behind() -> None:
    await Talk({"type": "websocket.disconnect", "code": 1006}).run(MarketConsumer)
    assert prices.hub.members == 0


class SlowCache(ApiKeyCache):
    """Its database answers after something else has happened."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(EventFeed())
        self._meanwhile = meanwhile
        self.asked = 0

    async def find(self, key: str) -> Caller | None:
        self.asked += 1
        if self.asked == 1:
            await self._meanwhile()
            return CALLER
        return None


async def test_key_that_is_revoked_while_it_is_looked_up_opens_nothing() -> None:
    async def revoke() -> None:
        sockets.revoke({"account": 1, "key": 1})

    cache = SlowCache(revoke)
    sockets = AuthenticatedSessions(cache)
    assert (await sockets.find("key"), cache.asked) == (None, 2)


async def test_key_is_looked_up_once_if_nothing_happens() -> None:
    async def nothing() -> None: ...

    cache = SlowCache(nothing)
    assert (await AuthenticatedSessions(cache).find("key"), cache.asked) == (CALLER, 1)


class Watched:
    identity = Identity({"headers": []})

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault, self.looks = fault, asyncio.Semaphore(0)
        self.looked_s = 0.0

    def renew(self, caller: Caller | None) -> None: ...

    def give_up(self) -> None: ...

    def check_time(self, now_s: float) -> None:
        self.looked_s = now_s
        self.looks.release()
        if self.fault is not None:
            raise self.fault


class Quick(AuthenticatedSessions):
    LOOK_EVERY_S = 0.005


async def test_socket_that_cannot_be_looked_after_keeps_nobody_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sockets = Quick(key_cache)
    watched = [Watched(), Watched(ZeroDivisionError()), Watched()]
    for socket in watched:
        sockets.watch(socket)
    for _ in range(2):
        for socket in (watched[0], watched[2]):
            await asyncio.wait_for(socket.looks.acquire(), PATIENCE_S)
    assert len(caplog.records) == 1


async def test_a_crowd_is_looked_after_bit_by_bit() -> None:
    """All at once they would hold everybody up."""
    sockets, crowd = Quick(key_cache), [Watched() for _ in range(1_000)]
    for socket in crowd:
        sockets.watch(socket)
    for socket in crowd:
        await asyncio.wait_for(socket.looks.acquire(), PATIENCE_S)
    at_once = Counter(socket.looked_s for socket in crowd)
    assert max(at_once.values()) < len(crowd) / 8


async def test_who_has_gone_is_looked_after_no_more_and_who_comes_is() -> None:
    sockets, watched = Quick(key_cache), Watched()
    sockets.watch(watched)
    await asyncio.wait_for(watched.looks.acquire(), PATIENCE_S)
    sockets.remove(watched, 1)
    other = Watched()
    sockets.watch(other)
    # All parts have had their turn twice.
    for _ in range(2):
        await asyncio.wait_for(other.looks.acquire(), PATIENCE_S)
    assert watched.looks.locked()
