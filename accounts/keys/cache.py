"""Finding who holds a key without asking the database each time, and noting when keys were last used: in
memory, written for many at once."""

from __future__ import annotations

import hmac
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Case, Model, Q, Value, When
from prometheus_client import Counter

from core.background import SharedLookups
from core.contract.errors import Overloaded
from core.events.feed import EventFeed
from core.threads import in_thread, in_thread_promptly

from .text import is_well_formed

# With the 15 s between two looks, so that a use stands there within a minute.
WRITTEN_EVERY_S = 40.0

# A use that is known so exactly is not written again.
CLOSE = timedelta(seconds=15)
WRITTEN_AT_ONCE = 200


class LastUse:
    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._used: dict[int, datetime] = {}
        self._written_at: dict[int, float] = {}

    def note(self, key_id: int, at: datetime) -> None:
        self._used[key_id] = at

    async def record(self, *, all_of_it: bool = False) -> None:
        """Write those that were not written for a while; the others wait for their turn."""
        now = time.monotonic()
        self._written_at = {key: at for key, at in self._written_at.items() if now - at < WRITTEN_EVERY_S}
        due = {key: at for key, at in self._used.items() if all_of_it or key not in self._written_at}
        if not due:
            return
        self._used = {key: at for key, at in self._used.items() if key not in due}
        try:
            await in_thread(self._write, due)
        except (DatabaseError, Overloaded):
            self._used = due | self._used
            raise
        self._written_at |= dict.fromkeys(due, now)

    def _write(self, due: dict[int, datetime]) -> None:
        """Sorted, so that two processes never wait for each other in a circle."""
        keys = sorted(due)
        for start in range(0, len(keys), WRITTEN_AT_ONCE):
            self._write_some({key: due[key] for key in keys[start : start + WRITTEN_AT_ONCE]})

    def _write_some(self, due: dict[int, datetime]) -> None:
        # Another process may have written the same key a moment ago: one of them is enough.
        enough = Case(*(When(pk=key, then=Value(at - CLOSE)) for key, at in due.items()))
        is_old = Q(last_used_at=None) | Q(last_used_at__lt=enough)
        manager: Any = self._model._default_manager
        manager.filter(is_old, pk__in=due).update(
            last_used_at=Case(*(When(pk=key, then=Value(at)) for key, at in due.items()))
        )


trusted = Counter(
    "tickwire_keys_trusted", "Requests and messages let in by memory while the database could not be asked."
)


class KeyHolder(Protocol):
    @property
    def key_id(self) -> int: ...


H = TypeVar("H", bound=KeyHolder)


class KeyCache(ABC, Generic[H]):
    """Known keys of one kind by digest. Control events make it forget, so a revocation holds at once."""

    lead: ClassVar[str]
    model: ClassVar[type[Model]]

    def __init__(self, events: EventFeed) -> None:
        self._events = events
        self._pepper = settings.KEY_PEPPER.encode()
        self._known: dict[bytes, H] = {}
        self._drops = 0
        self._looks: SharedLookups[bytes, H | None] = SharedLookups()
        self.used = LastUse(self.model)

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
        if not is_well_formed(key, self.lead):
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

    def forget_all(self, facts: dict[str, Any]) -> None:
        self.forget(lambda holder: True)

    async def record_use(self, *, all_of_it: bool = False) -> None:
        await self.used.record(all_of_it=all_of_it)
