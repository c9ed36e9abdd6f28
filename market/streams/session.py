"""A socket of a stream: who may subscribe, what a client is told, and how it ends."""

import asyncio
import logging
import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable
from itertools import cycle
from sys import intern
from typing import Any, ClassVar, Protocol

from django.conf import settings
from msgspec import UNSET, UnsetType

from accounts.key_text import shown_prefix
from accounts.keys import BROWSER_TOKEN_LEAD, ApiKeyCache, Caller, key_cache
from accounts.limits import throttle
from accounts.open_streams import MOST_SYMBOLS, EndCode, Slot, SlotRefusal, StreamDetails, open_streams
from accounts.usage import usage_buffer
from core.addresses import address_of, is_loopback
from core.background import BackgroundLoop
from core.clock import now_ms, passed_ms
from core.database import TRANSIENT
from core.events.event_feed import EventFeed, feed
from core.fault_log import EachFault, RepeatedWarning
from core.logs import log_refusal
from core.plain_json import encode
from core.request_headers import came_plain, header
from market.streams.hub.subscribers import Subscriber
from market.streams.protocol.messages import (
    CHAOS,
    RESTARTING,
    TOO_MANY_INVALID,
    AnyMessage,
    Code,
    Control,
    List,
    RequestedFeature,
    StreamRefused,
    Subscribe,
    Unsubscribe,
    invalid,
    too_many_streams,
)
from market.streams.protocol.reading import MAX_BYTES, Inbound, read, unknown_features
from market.streams.protocol.replies import Heartbeat, Listed, Notice, Pong, Unsubscribed
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.stream import Stream
from serving.http.connections import connection_in
from serving.websocket.connection import WebSocketConnection, frame
from serving.websocket.session import Scope, WebSocketSession

# The authenticated sessions of this process: whose they are, what happens when a key changes, one timer for
# all of them, and their end when revocations could not be read for too long.
# After a restart everybody comes at once. The queue in front of the database refuses what it cannot serve
# soon, so sockets wait for each other and never fill it.
ASKING_AT_ONCE = 64
logger = logging.getLogger(__name__)

# What a client calls itself is shown to its owner, not more of it.
MOST_OF_AGENT = 120

# The code stays 4401: waiting does not make a key valid, and after 4429 a client would try it again.
TOO_MANY_FAILURES = "Too many attempts without a valid API key from this address. Wait, then send one."


class Identity:
    """The key that a socket showed last. Cookies and addresses do not count."""

    __slots__ = ("_came_plain", "_connection", "_is_local", "_sent", "address", "agent", "caller", "key")

    def __init__(self, scope: Scope) -> None:
        """What is said of the handshake is asked now: its headers are not kept."""
        self.address = address_of(scope)
        # One text for all sockets of a program.
        self.agent = intern((header(scope, b"user-agent") or "")[:MOST_OF_AGENT])
        self._sent = header(scope, b"x-api-key")
        self._came_plain, self._is_local = came_plain(scope), is_loopback(scope)
        self._connection = connection_in(scope)
        self.key = ""
        self.caller: Caller | None = None

    @property
    def expires_at(self) -> float | None:
        return None if self.caller is None else self.caller.expires_at

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= time.time()

    async def show(self, key: str | UnsetType) -> Caller:
        """The caller, by the key in a message, or by the one shown before or with the handshake."""
        shown = (self.key or self._sent or "") if key is UNSET else key
        if self.caller is not None and shown == self.key:
            return self.caller
        if shown and self._came_plain:
            raise StreamRefused("https_required")
        caller = await self._checked(await authenticated_sessions.find(shown) if shown else None)
        if self.caller is not None and caller.account_id != self.caller.account_id:
            raise invalid("This socket belongs to another account: open one for each.", "api_key")
        self.key, self.caller = shown, caller
        if self._connection is not None:
            self._connection.is_known = True
        return caller

    async def look_again(self) -> Caller:
        """What the caller may do now."""
        self.caller = await self._checked(await authenticated_sessions.find(self.key, again=True))
        return self.caller

    async def _checked(self, caller: Caller | None) -> Caller:
        """Failures are counted with those of REST. After too many, a client is told how long to wait."""
        if caller is not None and (not caller.is_demo or self._is_local):
            return caller
        standing = await throttle.note_failure(self.address)
        if standing.admitted:
            raise StreamRefused("invalid_api_key")
        raise StreamRefused("invalid_api_key", TOO_MANY_FAILURES, retry_after=max(1, standing.wait_s))


class AuthenticatedSession(Protocol):
    identity: Identity

    def renew(self, caller: Caller | None) -> None:
        """Its key has changed; with None, it is no longer valid."""

    def check_time(self, now_s: float) -> None:
        """Called every second."""

    def give_up(self) -> None:
        """Called when nobody can tell any more whether its key is valid."""


LOOK_EVERY_S = 1.0


class AuthenticatedSessions:
    LOOK_EVERY_S = LOOK_EVERY_S
    PARTS = 19
    """They take turns, because a look at 10,000 at once would take 15 ms. It is a prime, so that hashes,
    which are made of addresses in memory, spread over all parts."""

    def __init__(self, cache: ApiKeyCache) -> None:
        self._cache = cache
        self.clear()
        self.changes = 0
        """How often something changed that a caller found before does not reflect."""

    def clear(self) -> None:
        self._by_account: defaultdict[int, set[AuthenticatedSession]] = defaultdict(set)
        self._watched: tuple[set[AuthenticatedSession], ...] = tuple(set() for _ in range(self.PARTS))
        self._turns = cycle(self._watched)
        self._is_watching = False
        self._asking = asyncio.Semaphore(ASKING_AT_ONCE)

    async def find(self, key: str, *, again: bool = False) -> Caller | None:
        """The present holder of a key; an event meanwhile means asking again. `again` is for a key that the
        socket has shown before."""
        while True:
            changes = self.changes
            async with self._asking:
                caller = await (self._cache.find_again(key) if again else self._cache.find(key))
            if changes == self.changes:
                return caller

    def add(self, socket: AuthenticatedSession, account_id: int) -> None:
        self._by_account[account_id].add(socket)

    def remove(self, socket: AuthenticatedSession, account_id: int) -> None:
        self._part_of(socket).discard(socket)
        self._by_account[account_id].discard(socket)
        if not self._by_account[account_id]:
            del self._by_account[account_id]

    def all(self) -> tuple[AuthenticatedSession, ...]:
        return tuple(socket for sockets in self._by_account.values() for socket in sockets)

    def watch(self, socket: AuthenticatedSession) -> None:
        """Call its `check_time` every second."""
        self._part_of(socket).add(socket)
        if not self._is_watching:
            self._is_watching = True
            self._look_later()

    def _part_of(self, socket: AuthenticatedSession) -> set[AuthenticatedSession]:
        return self._watched[hash(socket) % self.PARTS]

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(self.LOOK_EVERY_S / self.PARTS, self._look)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        part = next(self._turns)
        for socket in tuple(part):
            try:
                socket.check_time(now_s)
            except Exception:  # noqa: BLE001 - the top of a timer: the others still want to be told
                logger.exception("A socket could not be looked after")
                part.discard(socket)
        self._is_watching = any(self._watched)
        if self._is_watching:
            self._look_later()

    def revoke(self, facts: dict[str, Any]) -> None:
        self._end(facts, lambda who: who.caller is not None and who.caller.key_id == facts["key"])

    async def roll(self, facts: dict[str, Any]) -> None:
        """A key that ends at once counts as revoked, whether the database answers or not."""
        if "ends_at" in facts and facts["ends_at"] <= time.time():
            self.revoke(facts)
        else:
            await self.look_again(facts)

    async def change(self, facts: dict[str, Any]) -> None:
        if facts.get("active", True):
            await self.look_again(facts)
        else:
            self._end(facts, lambda who: True)

    async def end_pages(self, facts: dict[str, Any]) -> None:
        """Only the database knows which of an account's pages are meant. Without it, all of them end."""
        try:
            await self.look_again(facts)
        except TRANSIENT:
            self._end(facts, lambda who: who.key.startswith(BROWSER_TOKEN_LEAD))
            raise

    async def look_at_all(self, facts: dict[str, Any]) -> None:
        for account_id in tuple(self._by_account):
            await self.look_again({"account": account_id})

    async def look_again(self, facts: dict[str, Any]) -> None:
        self.changes += 1
        held = self._held(facts)
        for key in {socket.identity.key for socket in held}:
            caller = await self._cache.find_again(key)
            for socket in held:
                if socket.identity.key == key:
                    socket.renew(caller)

    def count_change(self, facts: dict[str, Any]) -> None:
        self.changes += 1

    def _end(self, facts: dict[str, Any], concerns: Callable[[Identity], bool]) -> None:
        self.changes += 1
        for socket in self._held(facts):
            if concerns(socket.identity):
                socket.renew(None)

    def _held(self, facts: dict[str, Any]) -> tuple[AuthenticatedSession, ...]:
        return tuple(self._by_account.get(facts["account"], ()))


authenticated_sessions = AuthenticatedSessions(key_cache)

# Ending all at once would hold up other requests.
AT_ONCE, PAUSE_S = 100, 0.05


class TrustWatch(BackgroundLoop):
    def __init__(self, events: EventFeed, sessions: AuthenticatedSessions) -> None:
        text = "Could not look whether keys may still be trusted"
        fault = EachFault(logger, text)
        super().__init__("trust in known keys", self._look, fault=fault, broke=text, before=LOOK_EVERY_S)
        self._events, self._sessions = events, sessions
        self._was_over = False

    async def _look(self) -> None:
        was_over, self._was_over = self._was_over, self._events.is_trust_over
        # Over twice in a row: a process that was frozen finds much time gone, and then reads what it missed.
        ending = self._sessions.all() if was_over and self._was_over else ()
        if ending:
            logger.warning("%d streams end: revocations could not be read for too long", len(ending))
        for start in range(0, len(ending), AT_ONCE):
            for socket in ending[start : start + AT_ONCE]:
                socket.give_up()
            await asyncio.sleep(PAUSE_S)


trust_watch = TrustWatch(feed, authenticated_sessions)


# Otherwise each attempt to open a stream would write a line.
ended_without_database = RepeatedWarning(
    logger, "%d streams ended because the database does not answer, the last one of: %s"
)

# What the client itself asked for, or what another log line tells.
NO_REFUSALS: frozenset[Code] = frozenset(("taken_over", "stream_closed", "internal_error"))
UNTRUSTED = (
    "The database has been unavailable for too long to confirm that your key is still valid. Try again later."
)


class StreamSession(WebSocketSession):
    stream: ClassVar[Stream]
    HEARTBEAT_AFTER_S: ClassVar[float] = 10.0

    def join(self, connection: WebSocketConnection) -> None:
        self.identity = Identity(self.scope)
        self.subscriptions = Subscriptions()
        self._inbound = Inbound()
        self._slot: Slot | None = None
        connection.guard(MAX_BYTES, flooded)
        connection.farewell = farewell
        self.subscriber: Subscriber = self.stream.hub.join(connection, self._too_slow)

    async def connect(self) -> None:
        await super().connect()
        # What is needed of it was read. All that waits for this socket holds it, in each of thousands.
        self.scope.clear()

    async def take_data(self, data: bytes, *, is_text: bool) -> None:
        self._inbound.take(passed_ms())
        if len(data) > MAX_BYTES:
            raise too_big()
        if not is_text:
            raise invalid("Send JSON as text, not as binary.")
        message = read(data, self.stream.kind)
        try:
            await self.take(message)
        except StreamRefused as refused:
            refused.id = message.id
            raise

    async def take(self, message: AnyMessage) -> None:
        if isinstance(message, Subscribe) and not self._offers(message.features):
            raise unknown_features()
        caller = await self.identity.show(message.api_key)
        if not self.is_open:
            return
        authenticated_sessions.add(self, caller.account_id)
        if isinstance(message, Subscribe):
            if self._slot is None:
                await self._claim(takeover=message.takeover)
            if self.is_open:
                await self.prepare(message)
            if self.is_open:
                self.subscribe(message)
                self._settle_in(message)
        elif isinstance(message, Unsubscribe):
            self.subscriptions.unsubscribe(message)
            self.listen()
            self.say(Unsubscribed(**self._subscribed(), id=message.id, time=now_ms()))
        elif isinstance(message, List):
            self.say(Listed(**self._subscribed(), id=message.id, time=now_ms()))
        else:
            self.say(Pong(id=message.id, time=now_ms()))

    def _subscribed(self) -> dict[str, Any]:
        """What is subscribed now, as replies tell it."""
        wanted = self.subscriptions
        return {
            "symbols": wanted.symbols,
            "timeframes": [*wanted.timeframes] or UNSET,
            "categories": wanted.shown_categories,
        }

    async def prepare(self, message: Subscribe) -> None:
        """Read what the reply needs. Called with a slot: who may open no stream makes nobody read."""

    @abstractmethod
    def subscribe(self, message: Subscribe) -> None:
        """Reply, then send what was asked for. It is no coroutine, so that no frame comes before the reply
        and none is missed after it."""

    def listen(self) -> None:
        """Make the hub send what is subscribed now."""
        stream, wanted = self.stream, self.subscriptions
        stream.hub.subscribe(self.subscriber, stream.topics_of(wanted), stream.variant_of(wanted))
        if self._slot is not None:
            open_streams.note_change(self._slot)

    def describe(self) -> StreamDetails:
        """For the account's owner, who may wonder which program this is."""
        who, symbols = self.identity, self.subscriptions.symbols
        more = max(0, len(symbols) - MOST_SYMBOLS)
        key_id = 0 if who.caller is None else who.caller.key_id
        return StreamDetails(key_id, who.address, who.agent, symbols[:MOST_SYMBOLS], more)

    def say(self, answer: Control) -> None:
        self.subscriber.send(frame(encode(answer)))

    async def answer_fault(self, error: Exception) -> None:
        if isinstance(error, StreamRefused):
            self._refuse(error)
            return
        if isinstance(error, TRANSIENT):
            ended_without_database.tell(error)
        else:
            logger.error("A message on %s could not be answered", self.stream.kind.path, exc_info=error)
        self.end("internal_error")

    def _refuse(self, refused: StreamRefused) -> None:
        if refused.code == "invalid_message" and self._inbound.is_one_too_many(passed_ms()):
            refused.close = TOO_MANY_INVALID
        if refused.close is None:
            self.say(refused.frame(now_ms()))
        else:
            self.end(refused)

    def end(self, why: Code | StreamRefused) -> None:
        """Leave, say why, and close."""
        refused = why if isinstance(why, StreamRefused) else StreamRefused(why)
        if self.is_open and refused.close is not None:
            self._log_end(refused.code, refused.close)
            self._let_go()
            last = frame(encode(refused.frame(now_ms())))
            self.stream.hub.end(self.subscriber, refused.close, refused.code, last)

    def _log_end(self, code: Code, close: int) -> None:
        if code in NO_REFUSALS:
            return
        caller, key = self.identity.caller, shown_prefix(self.identity.key)
        known = {"account": caller.account_id if caller else None, "key": key}
        who = {name: value for name, value in known.items() if value}
        path = self.stream.kind.path
        log_refusal(
            f"{close} {code}",
            self.identity.address,
            f"{path} closed with {close} {code}",
            route=path,
            **who,
        )

    def leave(self) -> None:
        self.stream.hub.leave(self.subscriber)
        self._let_go()

    def _let_go(self) -> None:
        super().leave()
        if self.identity.caller is not None:
            authenticated_sessions.remove(self, self.identity.caller.account_id)
        if self._slot is not None:
            self._slot.release()

    def _offers(self, features: frozenset[RequestedFeature]) -> bool:
        """Only the demo has an instrument that misbehaves on request, and its candles do not."""
        kind = self.stream.kind
        misbehaves = settings.DEMO and kind.is_numbered and not kind.has_timeframes
        return misbehaves or features.isdisjoint(CHAOS)

    async def _claim(self, *, takeover: bool) -> None:
        changes = authenticated_sessions.changes
        caller = await self.identity.look_again()
        if not self.is_open:
            # A socket that is gone must not end somebody else's stream.
            return
        limit = caller.allowances.streams
        slot = await open_streams.claim(
            caller.counted_under,
            self.stream.kind.path,
            limit,
            takeover=takeover,
            on_end=self._lost_slot,
            describe=self.describe,
        )
        if isinstance(slot, SlotRefusal):
            raise too_many_streams(slot.limit, slot.open, is_page=caller.is_page)
        self._slot = slot
        if not caller.is_page:
            usage_buffer.note_stream(caller.account_id)
        if not self.is_open:
            slot.release()
        elif changes != authenticated_sessions.changes:
            # Its tier may have been lowered before this stream was counted.
            caller = await self.identity.look_again()
            await open_streams.enforce(caller.counted_under, caller.allowances.streams)

    def _settle_in(self, message: Subscribe) -> None:
        self.stay()
        features = self.subscriptions.features
        if "heartbeat" in features or self.identity.expires_at is not None:
            authenticated_sessions.watch(self)
        if self._slot is not None and self.stream.kind.is_numbered:
            self._slot.goes_on |= "seq" in features or message.resume is not UNSET

    def renew(self, caller: Caller | None) -> None:
        if caller is None:
            self.end("invalid_api_key")
        elif self.is_open:
            self.identity.caller = caller
            if caller.expires_at is not None:
                authenticated_sessions.watch(self)

    def give_up(self) -> None:
        self.end(StreamRefused("internal_error", UNTRUSTED))

    def check_time(self, now_s: float) -> None:
        if self.identity.has_expired:
            self.end("invalid_api_key")
        elif "heartbeat" in self.subscriptions.features and self.subscriber.has_been_silent_since(
            now_s - self.HEARTBEAT_AFTER_S
        ):
            self.say(Heartbeat(time=now_ms()))

    def _lost_slot(self, code: EndCode) -> None:
        if code == "restarting":
            self._let_go()
            self.stream.hub.end(self.subscriber, RESTARTING, last=frame(farewell()))
            return
        if code != "stream_limit_exceeded":
            self.end(code)
            return
        limit = self._slot.limit if self._slot is not None else 0
        self.end(too_many_streams(limit, limit))

    def first_is_late(self) -> None:
        self.end("subscribe_timeout")

    def _too_slow(self) -> None:
        self.end("slow_consumer")


def too_big() -> StreamRefused:
    """Our server closes with 1009 before this. Other servers let the message in, and daphne cannot close with
    it."""
    refused = invalid("A message has at most 16 KiB.", max=MAX_BYTES)
    refused.close = TOO_MANY_INVALID
    return refused


def farewell() -> bytes:
    return encode(Notice(code="restarting", time=now_ms()))


def flooded() -> bytes:
    return encode(StreamRefused("too_many_messages").frame(now_ms()))
