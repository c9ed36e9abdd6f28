"""Finding who holds a key, without asking the database each time."""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar

from django.conf import settings
from django.db.models import Model
from prometheus_client import Counter

from . import keys
from .events import BEGAN_ANEW, EventFeed
from .last_use import LastUse
from .shared_looks import SharedLooks
from .threads import in_thread_promptly

trusted = Counter(
    "tickwire_keys_trusted", "Requests and messages let in by memory while the database could not be asked."
)


class Holder(Protocol):
    @property
    def key_id(self) -> int: ...


H = TypeVar("H", bound=Holder)


class Ring(ABC, Generic[H]):
    """Known keys of one kind by digest. Control events make it forget, so a revocation holds at once."""

    lead: ClassVar[str]
    model: ClassVar[type[Model]]

    def __init__(self, events: EventFeed) -> None:
        self._events = events
        self._pepper = settings.KEY_PEPPER.encode()
        self._known: dict[bytes, H] = {}
        self._drops = 0
        self._looks: SharedLooks[bytes, H | None] = SharedLooks()
        self.used = LastUse(self.model)
        events.on(BEGAN_ANEW, lambda facts: self.forget(lambda holder: True))

    @abstractmethod
    def look_up(self, digest: str) -> H | None:
        """One query, the same for an unknown and a revoked key, so that its time tells nothing."""

    def has_ended(self, holder: H) -> bool:
        return False

    async def find(self, key: str) -> H | None:
        # A lone surrogate, as JSON can bring one, becomes "?", which no key holds.
        digest = hmac.digest(self._pepper, key.encode(errors="replace"), "sha256")
        holder = self._known.get(digest) if self._events.may_be_trusted else None
        if holder is None:
            holder = await self._ask(key, digest)
        elif not self._events.is_current:
            trusted.inc()
        if holder is None or self.has_ended(holder):
            return None
        self.used.note(holder.key_id, datetime.now(UTC))
        return holder

    async def _ask(self, key: str, digest: bytes) -> H | None:
        if not keys.is_well_formed(key, self.lead):
            return None
        return await self._look(digest)

    async def _look(self, digest: bytes) -> H | None:
        look = partial(in_thread_promptly, self.look_up, digest.hex())
        return await self._found(digest, self._looks.ask(digest, look))

    async def _found(self, digest: bytes, asked: Awaitable[H | None]) -> H | None:
        drops = self._drops
        holder = await asked
        # An event that came in between may have been about this very key: then do not remember it.
        if holder is not None and drops == self._drops and self._events.is_current:
            self._remember(digest, holder)
        return holder

    def _remember(self, digest: bytes, holder: H) -> None:
        self._known[digest] = holder

    def forget(self, has_changed: Callable[[H], bool]) -> None:
        self._drops += 1
        self._known = {digest: holder for digest, holder in self._known.items() if not has_changed(holder)}

    async def record_use(self, *, all_of_it: bool = False) -> None:
        await self.used.record(all_of_it=all_of_it)
