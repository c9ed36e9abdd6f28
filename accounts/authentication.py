"""Finding the caller behind an API key."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from . import keys, page_tokens
from .callers import caller_of
from .events import EventFeed, feed
from .marked_rings import MarkedRing
from .models import ApiKey
from .page_ring import PageRing
from .tiers import Caller


class KeyRing(MarkedRing[Caller]):
    lead = keys.LEAD
    model = ApiKey
    kind = "key"

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        self._pages = PageRing(events)
        for kind in ("key.revoked", "key.rolled", "account.changed", "tier.changed"):
            events.on(kind, self.drop)

    async def find(self, key: str) -> Caller | None:
        if key.startswith(page_tokens.LEAD):
            return await self._pages.find_caller(key)
        return await super().find(key)

    async def find_again(self, key: str) -> Caller | None:
        """For a socket that showed it before: a page's goes on after its token's end."""
        if key.startswith(page_tokens.LEAD):
            return await self._pages.find_again(key)
        return await self.find(key)

    async def record_use(self, *, all_of_it: bool = False) -> None:
        await super().record_use(all_of_it=all_of_it)
        await self._pages.record_use(all_of_it=all_of_it)

    def look_up(self, digest: str) -> Caller | None:
        return find_caller(digest)

    def has_ended(self, holder: Caller) -> bool:
        return holder.expires_at is not None and holder.expires_at <= time.time()

    def drop(self, facts: dict[str, Any]) -> None:
        """Forget the account that changed, or everybody where no account is named."""
        changed = facts.get("account")
        self.forget(lambda caller: changed is None or caller.account_id == changed)


def find_caller(digest: str) -> Caller | None:
    key = (
        ApiKey.objects.usable(datetime.now(UTC))
        .of_active_users()
        .select_related("account__tier", "account__user")
        .filter(digest=digest)
        .first()
    )
    if key is None:
        return None
    expires_at = key.expires_at.timestamp() if key.expires_at else None
    return caller_of(key.account, key_id=key.pk, expires_at=expires_at)


key_ring = KeyRing(feed)
