"""What only a fault, a crowd or bad luck in time brings about, on sockets without a server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from django.db import OperationalError

from accounts.keys.cache import ApiKeyCache, key_cache
from accounts.keys.caller import BROWSER_TOKEN_LEAD, Allowances, Caller
from accounts.open_streams import Slot, SlotRefusal, open_streams
from core.contract.errors import Overloaded
from core.events.event_feed import EventFeed
from core.events.kinds import EventKind
from core.events.outbox import EventMessage
from core.threads import MAX_WAITING
from market.streams import consumer as consumers
from market.streams.authenticated import AuthenticatedSockets, Identity, authenticated_sockets
from market.streams.consumer import Stream, StreamConsumer
from market.streams.market_streams import prices
from market.streams.protocol.messages import AnyMessage
from signals_feed.stream import signals
from tests.core.events.following import follow
from tests.factories import make_key
from tests.patience import PATIENCE_S, until

SCOPE = {"type": "websocket", "path": "/ws/market", "headers": [(b"host", b"127.0.0.1")]}
PING = {"type": "websocket.receive", "text": '{"action":"ping"}'}
SUBSCRIBE = '{"action":"subscribe","symbols":["EURUSD"],"api_key":"tw_live_x","takeover":true}'
UNSUBSCRIBE = '{"action":"unsubscribe","symbols":["EURUSD"],"api_key":"tw_live_x"}'
LEAVES = {"type": "websocket.disconnect", "code": 1000}
CALLER = Caller(1, 1, "alice", Allowances(tier="pro", requests=120, streams=5, ai_calls=20), None, False, "1")
ONE = msgspec.structs.replace(CALLER, allowances=msgspec.structs.replace(CALLER.allowances, streams=1))


class Talk:
    """The server's side of a socket: what the client says, and what it is told."""

    def __init__(self, *says: dict[str, Any]) -> None:
        self._says = asyncio.Queue[dict[str, Any]]()
        for event in ({"type": "websocket.connect"}, *says):
            self._says.put_nowait(event)
        self.told: list[dict[str, Any]] = []

    async def send(self, event: dict[str, Any]) -> None:
        self.told.append(event)
        if event["type"] == "websocket.close":
            self._says.put_nowait({"type": "websocket.disconnect", "code": event["code"]})

    async def run(
        self, consumer: type[StreamConsumer] = StreamConsumer, stream: Stream | None = prices
    ) -> list[dict[str, Any]]:
        async with asyncio.timeout(PATIENCE_S):
            await consumer(stream)(dict(SCOPE), self._says.get, self.send)
        return self.told


class Faulty(StreamConsumer):
    fault: Exception = ZeroDivisionError()

    async def take(self, message: AnyMessage, stream: Stream | None) -> None:
        raise self.fault


class Away(Faulty):
    fault = OperationalError("the database is away")


@pytest.mark.parametrize(("consumer", "is_ours"), [(Faulty, True), (Away, False)])
async def test_fault_ends_the_socket_with_4500(
    consumer: type[StreamConsumer], is_ours: bool, caplog: pytest.LogCaptureFixture
) -> None:
    _, told, closed = await Talk(PING, PING).run(consumer)
    error = json.loads(told["text"])
    assert (error["error"]["code"], error["fatal"], error["retry"]) == ("internal_error", True, True)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4500)
    logged = [record.exc_info is not None for record in caplog.records if record.levelno >= logging.WARNING]
    assert logged == [is_ours]


async def test_socket_that_is_cancelled_or_goes_at_once_leaves_nothing_behind() -> None:
    running = asyncio.create_task(Talk().run())
    while prices.hub.members != 1:  # noqa: ASYNC110 - it joins in its own time
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert prices.hub.members == 0
    await Talk(LEAVES).run()
    assert prices.hub.members == 0


class FoundLate(ApiKeyCache):
    """Something happens before the database answers."""

    def __init__(self, meanwhile: Callable[[], None], caller: Caller | None = ONE) -> None:
        super().__init__(EventFeed())
        self.caller, self._meanwhile = caller, meanwhile
        self.asked = 0

    async def find(self, key: str) -> Caller | None:
        self.asked += 1
        return self.caller

    async def find_again(self, key: str) -> Caller | None:
        self._meanwhile()
        return self.caller


@pytest.mark.parametrize(("is_revoked", "asked"), [(True, 2), (False, 1)])
async def test_key_that_is_revoked_while_it_is_looked_up_opens_nothing(is_revoked: bool, asked: int) -> None:
    class Slow(FoundLate):
        async def find(self, key: str) -> Caller | None:
            found = await super().find(key)
            if is_revoked and self.asked == 1:
                sockets.revoke({"account": 1, "key": 1})
                self.caller = None
            return found

    cache = Slow(lambda: None)
    sockets = AuthenticatedSockets(cache)
    assert await sockets.find("key") == (None if is_revoked else ONE)
    assert cache.asked == asked


@pytest.fixture
async def kept() -> AsyncIterator[Slot]:
    """The account has a stream that is open already."""
    slot = await open_streams.claim(ONE.counted_under, "/ws/market", 5, on_end=lambda code: None)
    assert isinstance(slot, Slot)
    yield slot
    slot.release()


class Seen(StreamConsumer):
    last: Seen

    def join(self, connection: Any) -> None:
        Seen.last = self
        super().join(connection)


async def subscribe(cache: FoundLate, monkeypatch: pytest.MonkeyPatch, *says: dict[str, Any]) -> None:
    monkeypatch.setattr(authenticated_sockets, "_cache", cache)
    await Talk({"type": "websocket.receive", "text": SUBSCRIBE}, *says).run(Seen)


@asynccontextmanager
async def answered(
    cache: FoundLate,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    stream: Stream | None = prices,
) -> AsyncIterator[list[dict[str, Any]]]:
    """What a socket is told that stays after its first answer."""
    monkeypatch.setattr(authenticated_sockets, "_cache", cache)
    talk = Talk({"type": "websocket.receive", "text": says})
    running = asyncio.create_task(talk.run(stream=stream))
    await until(lambda: len(talk.told) > 1)
    yield talk.told
    running.cancel()


@pytest.mark.parametrize("is_gone", [False, True])
async def test_only_a_socket_that_is_still_there_takes_over(
    kept: Slot, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    def end() -> None:
        if is_gone:
            Seen.last.end("invalid_api_key")

    await subscribe(FoundLate(end), monkeypatch, *[LEAVES] * (not is_gone))

    still_open = [stream.opened_at for stream in await open_streams.of(ONE.counted_under)]
    assert still_open == [kept.stream.opened_at] * is_gone


class ChangedMeanwhile:
    """The account's tier is lowered while the stream is being counted."""

    def __init__(self, cache: FoundLate) -> None:
        self._cache, self.enforced = cache, list[tuple[str, int]]()

    async def claim(self, counted_under: str, path: str, limit: int, **how: Any) -> Slot | SlotRefusal:
        slot = await open_streams.claim(counted_under, path, limit, **how)
        self._cache.caller = ONE
        authenticated_sockets.changes += 1
        return slot

    async def enforce(self, counted_under: str, limit: int) -> None:
        self.enforced.append((counted_under, limit))

    def note_change(self, slot: Slot) -> None:
        assert slot.limit


async def test_tier_that_is_lowered_while_a_stream_is_counted_is_enforced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = FoundLate(lambda: None, CALLER)
    changed = ChangedMeanwhile(cache)
    monkeypatch.setattr(consumers, "open_streams", changed)
    await subscribe(cache, monkeypatch, LEAVES)

    assert changed.enforced == [(ONE.counted_under, 1)]


@pytest.mark.parametrize(
    ("stream", "more", "goes_on"),
    [
        (prices, {}, False),
        (prices, {"features": ["seq"]}, True),
        (prices, {"resume": {"epoch": "e", "positions": {"EURUSD": 1}}}, True),
        # Signals have no numbers to go on from.
        (signals, {"features": ["seq"]}, False),
        (None, {"stream": "market", "features": ["seq"]}, True),
        (None, {"stream": "signals", "features": ["seq"]}, False),
    ],
)
async def test_socket_that_is_asked_to_come_again_is_told_so_and_only_one_that_can_go_on_is_asked(
    monkeypatch: pytest.MonkeyPatch, stream: Stream | None, more: dict[str, Any], goes_on: bool
) -> None:
    slots: list[Slot] = []

    async def claim(*what: Any, **how: Any) -> Slot | SlotRefusal:
        slot = await open_streams.claim(*what, **how)
        assert isinstance(slot, Slot)
        slots.append(slot)
        return slot

    monkeypatch.setattr(
        consumers, "open_streams", SimpleNamespace(claim=claim, note_change=lambda slot: None)
    )
    says = json.dumps(json.loads(SUBSCRIBE) | more)
    async with answered(FoundLate(lambda: None), monkeypatch, says, stream) as told:
        assert slots[0].goes_on is goes_on
        slots[0].end("restarting")
        await until(lambda: told[-1]["type"] == "websocket.close")
    assert (json.loads(told[-2]["text"])["code"], told[-1]["code"]) == ("restarting", 1012)
    assert await open_streams.of(ONE.counted_under) == []


async def test_who_has_no_stream_yet_may_unsubscribe(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = FoundLate(lambda: None)
    monkeypatch.setattr(consumers, "open_streams", ChangedMeanwhile(cache))
    async with answered(cache, monkeypatch, UNSUBSCRIBE) as told:
        assert json.loads(told[1]["text"])["type"] == "unsubscribed"


class Held:
    """A socket of account 1, as those who look after it know it."""

    def __init__(self, key: str = "", fault: Exception | None = None) -> None:
        self.identity = Identity({"headers": []})
        self.identity.key, self.identity.caller = key, CALLER
        self.fault, self.looks = fault, asyncio.Semaphore(0)
        self.is_open, self.looked_s = True, 0.0

    def renew(self, caller: Caller | None) -> None:
        self.is_open = caller is not None

    def give_up(self) -> None: ...

    def check_time(self, now_s: float) -> None:
        self.looked_s = now_s
        self.looks.release()
        if self.fault is not None:
            raise self.fault


# Of no time of day: the test may run hours after it is collected.
OVER_S, FAR_OFF_S = 1e9, 1e10


@pytest.mark.parametrize(
    ("is_away", "kind", "facts", "open_after"),
    [
        # Without the database some events still end access; with it what it says counts.
        (True, EventKind.ACCOUNT_CHANGED, {"active": False}, (False, False)),
        (True, EventKind.ACCOUNT_CHANGED, {"active": True}, (True, True)),
        (True, EventKind.ACCOUNT_CHANGED, {}, (True, True)),
        (True, EventKind.KEY_ROLLED, {"key": 1, "ends_at": OVER_S}, (False, False)),
        (True, EventKind.KEY_ROLLED, {"key": 1, "ends_at": FAR_OFF_S}, (True, True)),
        (True, EventKind.KEY_ROLLED, {"key": 2, "ends_at": OVER_S}, (True, True)),
        (True, EventKind.SESSION_ENDED, {}, (True, False)),
        (True, EventKind.PASSWORD_CHANGED, {}, (True, False)),
        (False, EventKind.ACCOUNT_CHANGED, {}, (False, False)),
        (False, EventKind.SESSION_ENDED, {}, (False, False)),
        (False, EventKind.BEGAN_ANEW, None, (False, False)),
    ],
)
async def test_what_ends_access_counts_for_sockets_by_key_and_by_page_also_without_the_database(
    is_away: bool, kind: str, facts: dict[str, Any] | None, open_after: tuple[bool, bool]
) -> None:
    def answer() -> None:
        if is_away:
            raise Overloaded(retry_after=1)

    feed, sockets = EventFeed(), AuthenticatedSockets(FoundLate(answer, None))
    held = Held("tw_live_x"), Held(f"{BROWSER_TOKEN_LEAD}x")
    follow(feed, sockets)
    for each in held:
        sockets.add(each, 1)
    try:
        await feed.handle(EventMessage(0, kind, {} if facts is None else {"account": 1, **facts}))
    except Overloaded:
        assert is_away
        assert (kind, facts) != (EventKind.ACCOUNT_CHANGED, {"active": False})
    assert tuple(each.is_open for each in held) == open_after


class Quick(AuthenticatedSockets):
    LOOK_EVERY_S = 0.005


async def looked(*sockets: Held) -> None:
    for socket in sockets:
        await asyncio.wait_for(socket.looks.acquire(), PATIENCE_S)


async def test_socket_that_cannot_be_looked_after_keeps_no_other_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sockets, watched = Quick(key_cache), [Held(), Held(fault=ZeroDivisionError()), Held()]
    for socket in watched:
        sockets.watch(socket)
    for _ in range(2):
        await looked(watched[0], watched[2])
    assert len(caplog.records) == 1


async def test_a_crowd_is_looked_after_bit_by_bit_as_long_as_it_is_there() -> None:
    """All at once they would hold everybody up."""
    sockets, crowd = Quick(key_cache), [Held() for _ in range(1_000)]
    for socket in crowd:
        sockets.watch(socket)
    await looked(*crowd)
    at_once = Counter(socket.looked_s for socket in crowd)
    assert max(at_once.values()) < len(crowd) / 8
    gone, other = crowd[0], Held()
    sockets.remove(gone, 1)
    while not gone.looks.locked():
        await gone.looks.acquire()
    sockets.watch(other)
    # All parts have had their turn twice.
    await looked(other, other)
    assert gone.looks.locked()


async def test_stream_ends_with_its_rolled_key_though_it_wants_no_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authenticated_sockets, "LOOK_EVERY_S", 0.005)
    rolled, other = msgspec.structs.replace(ONE, expires_at=OVER_S), Held()
    async with answered(FoundLate(lambda: None, rolled), monkeypatch, SUBSCRIBE) as told:
        authenticated_sockets.watch(other)
        # By its second look all others have been looked after.
        await looked(other, other)
        authenticated_sockets.remove(other, 1)
        await asyncio.sleep(0)
    assert (told[-1]["type"], told[-1].get("code")) == ("websocket.close", 4401)


@pytest.mark.usefixtures("transactional_db")
async def test_more_sockets_than_the_database_has_room_for_wait_for_each_other() -> None:
    """As after a restart, when all come at once."""
    key = await asyncio.to_thread(make_key)
    feed = EventFeed()
    await feed.start()
    cache = ApiKeyCache(feed)
    sockets = AuthenticatedSockets(cache)
    follow(feed, cache, sockets)

    found: list[Awaitable[Caller | None]] = [sockets.find(key) for _ in range(4 * MAX_WAITING)]
    callers = await asyncio.gather(*found)

    await feed.stop()
    assert None not in callers
