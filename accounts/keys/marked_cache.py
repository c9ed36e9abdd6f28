"""Rings that know which keys exist: for an unknown one the database is not asked a question of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from django.db import DatabaseError

from core.background import cancel_and_wait
from core.contract.errors import Overloaded
from core.events.feed import EventFeed
from core.threads import in_thread

from .cache import H, KeyCache
from .text import Marks, is_well_formed, mark_of

logger = logging.getLogger(__name__)
LOADED_AT_ONCE = 10_000
LOAD_AGAIN_S = 5.0

# Keys that open nothing although they are not revoked: expired, or their user is locked out.
MOST_CLOSED = 10_000


class MarkedKeyCache(KeyCache[H]):
    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self._marks = Marks()
        self._closed: set[bytes] = set()
        self._is_complete = False
        self._loading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """After the events: what is issued or revoked from then on is heard. Until all are loaded, each
        unknown key is asked for."""
        self._loading = asyncio.create_task(self._load(), name=f"marks of {self.model.__name__}")

    async def stop(self) -> None:
        await cancel_and_wait(self._loading)
        self._loading, self._is_complete = None, False
        self._marks = Marks()
        self._closed.clear()

    async def _ask(self, key: str, digest: bytes) -> H | None:
        if not is_well_formed(key, self.lead):
            return None
        if not self._may_exist(digest):
            # It may have been issued a moment ago: a new key works from when it is shown.
            await self._events.make_sure()
            if not self._may_exist(digest):
                return None
        drops = self._drops
        holder = await self._look(digest)
        # An event that came in between may have let in the very user who was still locked out at the look.
        has_ended = holder is None and drops == self._drops
        if has_ended and self._is_complete and len(self._closed) < MOST_CLOSED:
            self._marks.discard(digest)
            self._closed.add(digest)
        return holder

    def _may_exist(self, digest: bytes) -> bool:
        return not self._is_complete or digest in self._marks

    async def _load(self) -> None:
        last = 0
        while True:
            try:
                rows = await in_thread(self._read, last)
            except (DatabaseError, Overloaded) as error:
                logger.warning("Which keys exist is not known yet, trying again: %s", error)
                await asyncio.sleep(LOAD_AGAIN_S)
                continue
            for pk, mark in rows:
                self._marks.add(bytes.fromhex(mark))
                last = pk
            if len(rows) < LOADED_AT_ONCE:
                break
        self._is_complete = True

    def _read(self, last: int) -> list[tuple[int, str]]:
        rows: Iterable[tuple[int, str]] = (
            self.model._default_manager.filter(revoked_at=None, pk__gt=last)
            .order_by("pk")
            .values_list("pk", "digest")[:LOADED_AT_ONCE]
        )
        return [(pk, mark_of(digest)) for pk, digest in rows]

    def add(self, facts: dict[str, Any]) -> None:
        if "mark" in facts:
            self._marks.add(bytes.fromhex(facts["mark"]))
        elif self._is_complete:
            # A process of the version before wrote it.
            self.load_again(facts)

    def load_again(self, facts: dict[str, Any]) -> None:
        self._is_complete = False
        if self._loading is not None:
            self._loading.cancel()
        self._loading = asyncio.create_task(self._load(), name=f"marks of {self.model.__name__}")

    def remove(self, facts: dict[str, Any]) -> None:
        if "mark" in facts:
            self._marks.discard(bytes.fromhex(facts["mark"]))

    def reopen(self, facts: dict[str, Any]) -> None:
        """A user who was locked out may have been let in again: then their keys are asked for."""
        self._drops += 1
        for digest in self._closed:
            self._marks.add(digest)
        self._closed.clear()
