"""Finding the source behind an ingest key."""

from __future__ import annotations

from typing import Any

import msgspec

from accounts.events import EventFeed, feed
from accounts.marked_rings import MarkedRing
from accounts.throttling import throttle
from market.models import IngestKey

from .keys import LEAD
from .refusals import InvalidIngestKey, MissingIngestKey


class PushSource(msgspec.Struct, frozen=True):
    """Who sends ticks."""

    key_id: int
    name: str
    symbols: frozenset[str]
    """What it may send; empty for all."""

    @property
    def origin(self) -> str:
        return f"push:{self.name}"


class IngestRing(MarkedRing[PushSource]):
    lead = LEAD
    model = IngestKey
    kind = "ingest_key"

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        for kind in ("ingest_key.changed", "ingest_key.revoked"):
            events.on(kind, self.drop)

    def look_up(self, digest: str) -> PushSource | None:
        key = IngestKey.objects.filter(digest=digest, revoked_at=None).first()
        return None if key is None else PushSource(key.pk, key.name, frozenset(key.symbols.split()))

    def drop(self, facts: dict[str, Any]) -> None:
        self.forget(lambda source: source.key_id == facts.get("key"))


ingest_ring = IngestRing(feed)


async def identify(key: str | None, address: str) -> PushSource:
    source = await ingest_ring.find(key) if key else None
    if source is None:
        await throttle.count_failure(address, "ingest key")
        error = InvalidIngestKey() if key else MissingIngestKey()
        error.headers["WWW-Authenticate"] = "Bearer"
        raise error
    return source
