"""Finding who holds a key: remembered, so that the database is not asked each time, and forgotten as soon as
a control event says that something changed."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from django.db.models import Model
from prometheus_client import Counter

from accounts.key_text import API_KEY_LEAD, MARK_BYTES, is_well_formed
from accounts.models import ApiKey, PageSession
from accounts.usage import LastUse
from core.background import SharedLookups, cancel_and_wait
from core.database import UNANSWERED
from core.encryption import all_peppers
from core.events.event_feed import EventFeed, feed
from core.threads import in_thread, in_thread_promptly

from .caller import (
    BROWSER_TOKEN_LEAD,
    BrowserToken,
    Caller,
    find_browser_caller,
    find_caller,
    read_browser_token,
)

logger = logging.getLogger(__name__)
LOADED_AT_ONCE = 10_000
LOAD_AGAIN_S = 5.0

# Keys that open nothing although they are not revoked: expired, or their user is locked out.
MOST_CLOSED = 10_000
keys_trusted = Counter(
    "tickwire_keys_trusted",
    "Requests and messages let in by memory while the database could not be asked.",
    registry=None,
)


class KeyHolder(Protocol):
    @property
    def key_id(self) -> int: ...

    @property
    def expires_at(self) -> float | None: ...


H = TypeVar("H", bound=KeyHolder)


class KeyCache(ABC, Generic[H]):
    """Known keys of one kind by digest. Control events make it forget, so a revocation holds at once."""

    model: ClassVar[type[Model]]

    def __init__(self, events: EventFeed) -> None:
        self._events = events
        self._pepper, *self._fallbacks = (pepper.encode() for pepper in all_peppers())
        self._known: dict[bytes, H] = {}
        self._drops = 0
        self.used = LastUse(self.model)

    @abstractmethod
    async def ask(self, key: str, digest: bytes) -> H | None:
        """Find the holder of a key that is not remembered."""

    async def find(self, key: str) -> H | None:
        digest = self.digest(key)
        holder = self._known.get(digest) if self._events.may_be_trusted else None
        if holder is None:
            holder = await self.ask(key, digest)
        elif not self._events.is_current:
            keys_trusted.inc()
        now = time.time()
        if holder is None or (holder.expires_at is not None and holder.expires_at <= now):
            return None
        self.used.at[holder.key_id] = now
        return holder

    def digest(self, key: str) -> bytes:
        # A lone surrogate, possible in JSON, becomes "?", which no key contains.
        return hmac.digest(self._pepper, key.encode(errors="replace"), "sha256")

    def recall(self, digest: bytes) -> H | None:
        """The holder of a key that is remembered, while that is known to hold."""
        holder = self._known.get(digest) if self._events.is_current else None
        now = time.time()
        if holder is None or (holder.expires_at is not None and holder.expires_at <= now):
            return None
        self.used.at[holder.key_id] = now
        return holder

    async def remember(self, digest: bytes, looking: Awaitable[H | None]) -> H | None:
        drops = self._drops
        holder = await looking
        # An event that came in between may have been about this very key: then it is not remembered.
        if holder is not None and drops == self._drops and self._events.is_current:
            self._known[digest] = holder
        return holder

    def forget(self, has_changed: Callable[[H], bool]) -> None:
        self._drops += 1
        self._known = {digest: holder for digest, holder in self._known.items() if not has_changed(holder)}

    def forget_all(self, facts: dict[str, Any]) -> None:
        self.forget(lambda holder: True)


class Marks:
    """The first bytes of digests: 8 bytes each, sorted in buckets by the 2 bytes that stand before them."""

    def __init__(self) -> None:
        self._buckets: dict[bytes, array[int]] = {}

    def __contains__(self, digest: bytes) -> bool:
        return self._find(digest)[2]

    def add(self, digest: bytes) -> None:
        bucket, place, is_there = self._find(digest)
        if not is_there:
            bucket.insert(place, int.from_bytes(digest[2:MARK_BYTES]))
            self._buckets[digest[:2]] = bucket

    def discard(self, digest: bytes) -> None:
        bucket, place, is_there = self._find(digest)
        if is_there:
            del bucket[place]
            # Finding an empty bucket takes longer than finding none, and would tell a revoked key.
            if not bucket:
                del self._buckets[digest[:2]]

    def _find(self, digest: bytes) -> tuple[array[int], int, bool]:
        """Its position, or where it would be inserted, and whether it is there."""
        bucket = self._buckets.get(digest[:2], array("Q"))
        value = int.from_bytes(digest[2:MARK_BYTES])
        place = bisect_left(bucket, value)
        return bucket, place, place < len(bucket) and bucket[place] == value


class MarkedKeyCache(KeyCache[H]):
    """Knows which keys exist, so that the database is not asked for one that does not."""

    lead: ClassVar[str]

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self._looks: SharedLookups[bytes, H | None] = SharedLookups()
        self._marks = Marks()
        self._closed: set[bytes] = set()
        self._is_complete = False
        self.loading: asyncio.Task[None] | None = None

    @abstractmethod
    def look_up(self, digests: Sequence[str]) -> H | None:
        """One query, the same for an unknown and a revoked key, so that its duration reveals nothing."""

    async def start(self) -> None:
        """Started after the events, so that later keys and revocations are received. Until all marks are
        loaded, each unknown key is a query."""
        self.load_again({})

    async def stop(self) -> None:
        await cancel_and_wait(self.loading)
        self.loading, self._is_complete = None, False
        self._marks = Marks()
        self._closed.clear()

    async def ask(self, key: str, digest: bytes) -> H | None:
        if not is_well_formed(key, self.lead):
            return None
        # The previous peppers too: a key that is not in the cache may still be stored under one of them.
        digests = [digest, *(hmac.digest(each, key.encode(), "sha256") for each in self._fallbacks)]
        if not self._may_exist(digests):
            # It may have been issued a moment ago: a new key works from when it is shown.
            await self._events.make_sure()
            if not self._may_exist(digests):
                return None
        drops = self._drops
        look = partial(in_thread_promptly, self.look_up, [each.hex() for each in digests])
        holder = await self.remember(digest, self._looks.ask(digest, look))
        # An event in between may have unlocked the user who was still locked during the query.
        has_ended = holder is None and drops == self._drops
        if has_ended and self._is_complete and len(self._closed) < MOST_CLOSED:
            for each in digests:
                if each in self._marks:
                    self._marks.discard(each)
                    self._closed.add(each[:MARK_BYTES])
        return holder

    def _may_exist(self, digests: list[bytes]) -> bool:
        return not self._is_complete or any(digest in self._marks for digest in digests)

    def digests_in_use(self) -> dict[int, str]:
        """What the digests of keys that were used here are with the current pepper, by the keys' numbers."""
        return {holder.key_id: digest.hex() for digest, holder in self._known.items()}

    async def _load(self) -> None:
        last = 0
        while True:
            try:
                rows = await in_thread(self._read, last)
            except UNANSWERED as error:
                logger.warning("Which keys exist is not known yet, trying again: %s", error)
                await asyncio.sleep(LOAD_AGAIN_S)
                continue
            for last, digest in rows:  # noqa: B007 - where the next rows begin
                self._marks.add(bytes.fromhex(digest))
            if len(rows) < LOADED_AT_ONCE:
                break
        self._is_complete = True

    def _read(self, last: int) -> list[tuple[int, str]]:
        keys = self.model._default_manager.filter(revoked_at=None, pk__gt=last).order_by("pk")
        return list(keys.values_list("pk", "digest")[:LOADED_AT_ONCE])

    def add(self, facts: dict[str, Any]) -> None:
        if "mark" in facts:
            self._marks.add(bytes.fromhex(facts["mark"]))
        elif self._is_complete:
            # A process of the previous version wrote it.
            self.load_again(facts)

    def load_again(self, facts: dict[str, Any]) -> None:
        self._is_complete = False
        if self.loading is not None:
            self.loading.cancel()
        self.loading = asyncio.create_task(self._load(), name=f"marks of {self.model.__name__}")

    def remove(self, facts: dict[str, Any]) -> None:
        if "mark" in facts:
            mark = bytes.fromhex(facts["mark"])
            self._marks.discard(mark)
            self._closed.discard(mark)
        self.forget(lambda holder: holder.key_id == facts.get("key"))

    def reopen(self, facts: dict[str, Any]) -> None:
        """A user may have been unlocked: then their keys are loaded again."""
        self._drops += 1
        while self._closed:
            self._marks.add(self._closed.pop())


class BrowserPage(msgspec.Struct, frozen=True):
    """One of our own pages, by one of its tokens."""

    key_id: int
    """The id of its session."""
    caller: Caller
    expires_at: float


class BrowserTokenCache(KeyCache[BrowserPage]):
    model = PageSession
    # Each page brings a new token every few minutes. Above this number, expired ones are dropped.
    SWEEP_ABOVE = 1_000

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self._sweep_above = self.SWEEP_ABOVE
        self._callers: SharedLookups[int, Caller | None] = SharedLookups()

    async def ask(self, key: str, digest: bytes) -> BrowserPage | None:
        token = read_browser_token(key)
        if token is None or token.has_ended:
            return None
        if len(self._known) >= self._sweep_above:
            self.forget(lambda page: page.expires_at <= time.time())
            self._sweep_above = max(self.SWEEP_ABOVE, 2 * len(self._known))
        return await self.remember(digest, self._page_of(token))

    async def _page_of(self, token: BrowserToken) -> BrowserPage | None:
        caller = await self.find_caller(token)
        return None if caller is None else BrowserPage(token.page_session, caller, token.ends_at)

    async def find_caller(self, token: BrowserToken) -> Caller | None:
        """A page can have many tokens at once, and all of them look for the same."""
        look = partial(in_thread_promptly, find_browser_caller, token.page_session)
        return await self._callers.ask(token.page_session, look)

    def drop(self, facts: dict[str, Any]) -> None:
        changed = facts.get("account")
        self.forget(lambda page: changed in (None, page.caller.account_id))


class ApiKeyCache(MarkedKeyCache[Caller]):
    lead = API_KEY_LEAD
    model = ApiKey

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self.pages = BrowserTokenCache(events)

    async def find(self, key: str) -> Caller | None:
        if key.startswith(BROWSER_TOKEN_LEAD):
            page = await self.pages.find(key)
            return None if page is None else page.caller
        return await super().find(key)

    async def find_again(self, key: str) -> Caller | None:
        """Find the caller of a socket that is open already: a page goes on after its token has ended."""
        if key.startswith(BROWSER_TOKEN_LEAD):
            token = read_browser_token(key)
            return None if token is None else await self.pages.find_caller(token)
        return await self.find(key)

    def look_up(self, digests: Sequence[str]) -> Caller | None:
        return find_caller(digests)

    def drop(self, facts: dict[str, Any]) -> None:
        """Forget the account that changed, or all accounts if none is named."""
        changed = facts.get("account")
        self.forget(lambda caller: changed in (None, caller.account_id))


key_cache = ApiKeyCache(feed)
