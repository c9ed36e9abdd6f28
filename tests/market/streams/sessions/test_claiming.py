"""What happens to a socket while its stream is being counted, on a socket without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from accounts.keys.cache import ApiKeyCache
from accounts.keys.caller import Caller
from accounts.open_streams import Slot, SlotRefusal, open_streams
from core.events.event_feed import EventFeed
from market.streams.market_streams import MarketConsumer
from market.streams.sessions import session
from market.streams.sessions.authenticated import authenticated_sessions

from .test_consumer import CALLER, Talk

SUBSCRIBE = '{"action":"subscribe","symbols":["EURUSD"],"api_key":"tw_live_x","takeover":true}'
LEAVES = {"type": "websocket.disconnect", "code": 1000}
ONE = msgspec.structs.replace(CALLER, allowances=msgspec.structs.replace(CALLER.allowances, streams=1))


def nothing() -> None: ...


class FoundLate(ApiKeyCache):
    """Something happens before the database answers."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__(EventFeed())
        self.caller, self._meanwhile = ONE, meanwhile

    async def find(self, key: str) -> Caller | None:
        return self.caller

    async def find_again(self, key: str) -> Caller | None:
        self._meanwhile()
        return self.caller


@pytest.fixture
async def kept() -> AsyncIterator[Slot]:
    """The account has a stream that is open already."""
    slot = await open_streams.claim(ONE.counted_under, "/ws/market", 5, on_end=lambda code: None)
    assert isinstance(slot, Slot)
    yield slot
    slot.release()


async def still_open() -> list[float]:
    return [stream.opened_at for stream in await open_streams.of(ONE.counted_under)]


class Seen(MarketConsumer):
    last: Seen

    def join(self, connection: Any) -> None:
        Seen.last = self
        super().join(connection)


async def subscribe(
    cache: FoundLate, monkeypatch: pytest.MonkeyPatch, *says: dict[str, Any]
) -> list[dict[str, Any]]:
    monkeypatch.setattr(authenticated_sessions, "_cache", cache)
    return await Talk({"type": "websocket.receive", "text": SUBSCRIBE}, *says).run(Seen)


async def test_socket_that_is_there_takes_over(kept: Slot, monkeypatch: pytest.MonkeyPatch) -> None:
    await subscribe(FoundLate(nothing), monkeypatch, LEAVES)

    assert await still_open() == []


async def test_socket_that_is_gone_already_takes_over_nothing(
    kept: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(FoundLate(lambda: Seen.last.end("invalid_api_key")), monkeypatch)

    assert await still_open() == [kept.stream.opened_at]


class ChangedMeanwhile:
    """The account's tier is lowered while the stream is being counted."""

    def __init__(self, cache: FoundLate) -> None:
        self._cache, self.enforced = cache, list[tuple[str, int]]()

    async def claim(self, counted_under: str, path: str, limit: int, **how: Any) -> Slot | SlotRefusal:
        slot = await open_streams.claim(counted_under, path, limit, **how)
        self._cache.caller = ONE
        authenticated_sessions.changes += 1
        return slot

    async def enforce(self, counted_under: str, limit: int) -> None:
        self.enforced.append((counted_under, limit))

    def note_change(self, slot: Slot) -> None: ...


async def test_tier_that_is_lowered_while_a_stream_is_counted_is_enforced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = FoundLate(nothing)
    cache.caller, changed = CALLER, ChangedMeanwhile(cache)
    monkeypatch.setattr(session, "open_streams", changed)
    await subscribe(cache, monkeypatch, LEAVES)

    assert changed.enforced == [(ONE.counted_under, 1)]
