"""Whose the sockets of this process are, by their keys: what happens when a key changes, one timer for all of
them, and their end when revocations could not be read for too long."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import cycle
from sys import intern
from typing import Any, Protocol

from msgspec import UNSET, UnsetType

from accounts.keys import BROWSER_TOKEN_LEAD, ApiKeyCache, Caller, key_cache
from accounts.limits import throttle
from core.addresses import address_of, is_loopback
from core.background import BackgroundLoop
from core.database import TRANSIENT
from core.events.event_feed import EventFeed, feed
from core.fault_log import EachFault
from core.request_headers import came_plain, header
from market.streams.protocol.messages import StreamRefused, invalid
from serving.http.connections import connection_in
from serving.websocket.consumer import Scope

# After a restart everybody comes at once. The queue in front of the database refuses what it cannot serve
# soon, so sockets wait for each other and never fill it.
ASKING_AT_ONCE = 64
logger = logging.getLogger(__name__)

# Of the client's name for itself, its owner is shown at most this many characters.
MOST_OF_AGENT = 120

# The code stays 4401: waiting does not make a key valid, and after 4429 a client would try it again.
TOO_MANY_FAILURES = "Too many attempts without a valid API key from this address. Wait, then send one."


class Identity:
    """The key that a socket showed last. Cookies and addresses do not count."""

    __slots__ = ("_came_plain", "_connection", "_is_local", "_sent", "address", "agent", "caller", "key")

    def __init__(self, scope: Scope) -> None:
        """The handshake is inspected now: its headers are not kept."""
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
        caller = await self._checked(await authenticated_sockets.find(shown) if shown else None)
        if self.caller is not None and caller.account_id != self.caller.account_id:
            raise invalid("This socket belongs to another account: open one for each.", "api_key")
        self.key, self.caller = shown, caller
        if self._connection is not None:
            self._connection.is_known = True
        return caller

    async def look_again(self) -> Caller:
        """What the caller may do now."""
        self.caller = await self._checked(await authenticated_sockets.find(self.key, again=True))
        return self.caller

    async def _checked(self, caller: Caller | None) -> Caller:
        """Failures are counted with those of REST. After too many, the refusal says how long to wait."""
        if caller is not None and (not caller.is_demo or self._is_local):
            return caller
        standing = await throttle.note_failure(self.address)
        if standing.admitted:
            raise StreamRefused("invalid_api_key")
        raise StreamRefused("invalid_api_key", TOO_MANY_FAILURES, retry_after=max(1, standing.wait_s))


class AuthenticatedSocket(Protocol):
    identity: Identity

    def renew(self, caller: Caller | None) -> None:
        """Its key has changed; with None, it is no longer valid."""

    def check_time(self, now_s: float) -> None:
        """Called every second."""

    def give_up(self) -> None:
        """Called when the validity of its key can no longer be checked."""


LOOK_EVERY_S = 1.0


class AuthenticatedSockets:
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
        self._by_account: defaultdict[int, set[AuthenticatedSocket]] = defaultdict(set)
        self._watched: tuple[set[AuthenticatedSocket], ...] = tuple(set() for _ in range(self.PARTS))
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

    def add(self, socket: AuthenticatedSocket, account_id: int) -> None:
        self._by_account[account_id].add(socket)

    def remove(self, socket: AuthenticatedSocket, account_id: int) -> None:
        self._part_of(socket).discard(socket)
        self._by_account[account_id].discard(socket)
        if not self._by_account[account_id]:
            del self._by_account[account_id]

    def all(self) -> tuple[AuthenticatedSocket, ...]:
        return tuple(socket for sockets in self._by_account.values() for socket in sockets)

    def watch(self, socket: AuthenticatedSocket) -> None:
        """Call its `check_time` every second."""
        self._part_of(socket).add(socket)
        if not self._is_watching:
            self._is_watching = True
            self._look_later()

    def _part_of(self, socket: AuthenticatedSocket) -> set[AuthenticatedSocket]:
        return self._watched[hash(socket) % self.PARTS]

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(self.LOOK_EVERY_S / self.PARTS, self._look)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        part = next(self._turns)
        for socket in tuple(part):
            try:
                socket.check_time(now_s)
            except Exception:  # noqa: BLE001 - the top of a timer: the others are still to be checked
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

    def _held(self, facts: dict[str, Any]) -> tuple[AuthenticatedSocket, ...]:
        return tuple(self._by_account.get(facts["account"], ()))


authenticated_sockets = AuthenticatedSockets(key_cache)

# Ending all at once would hold up other requests.
AT_ONCE, PAUSE_S = 100, 0.05


class TrustWatch(BackgroundLoop):
    def __init__(self, events: EventFeed, sockets: AuthenticatedSockets) -> None:
        text = "Could not look whether keys may still be trusted"
        fault = EachFault(logger, text)
        super().__init__("trust in known keys", self._look, fault=fault, broke=text, before=LOOK_EVERY_S)
        self._events, self._sockets = events, sockets
        self._was_over = False

    async def _look(self) -> None:
        was_over, self._was_over = self._was_over, self._events.is_trust_over
        # Over twice in a row: a process that was frozen finds much time gone, and then reads what it missed.
        ending = self._sockets.all() if was_over and self._was_over else ()
        if ending:
            logger.warning("%d streams end: revocations could not be read for too long", len(ending))
        for start in range(0, len(ending), AT_ONCE):
            for socket in ending[start : start + AT_ONCE]:
                socket.give_up()
            await asyncio.sleep(PAUSE_S)


trust_watch = TrustWatch(feed, authenticated_sockets)
