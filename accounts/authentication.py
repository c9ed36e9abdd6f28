"""Finding the caller behind an API key, without asking the database each time."""

from __future__ import annotations

import hmac
import time
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from . import keys
from .events import EventFeed, feed
from .exceptions import Overloaded
from .models import ApiKey
from .threads import in_thread
from .tiers import Allowances, Caller


class KeyRing:
    """Known keys by digest. Control events drop them, so a revocation holds at once."""

    def __init__(self, events: EventFeed) -> None:
        self._events = events
        self._pepper = settings.KEY_PEPPER.encode()
        self._known: dict[bytes, Caller] = {}
        self._drops = 0
        self.used: dict[int, datetime] = {}
        """When each key was last used; written to the database by `record_use`."""
        for kind in ("key.revoked", "key.rolled", "account.changed", "tier.changed"):
            events.on(kind, self.drop)

    async def find(self, key: str) -> Caller | None:
        # A lone surrogate, as JSON can bring one, becomes "?", which no key holds.
        digest = hmac.digest(self._pepper, key.encode(errors="replace"), "sha256")
        caller = self._known.get(digest) if self._events.is_current else None
        if caller is None:
            caller = await self._ask(key, digest)
        if caller is None or (caller.expires_at is not None and caller.expires_at <= time.time()):
            return None
        self.used[caller.key_id] = datetime.now(UTC)
        return caller

    async def _ask(self, key: str, digest: bytes) -> Caller | None:
        if not keys.is_well_formed(key):
            return None
        drops = self._drops
        caller = await in_thread(find_caller, digest.hex())
        # An event that came in between may have been about this very key: then do not remember it.
        if caller is not None and drops == self._drops and self._events.is_current:
            self._known[digest] = caller
        return caller

    def drop(self, facts: dict[str, Any]) -> None:
        """Forget the account that changed, or everybody where no account is named."""
        self._drops += 1
        changed = facts.get("account")
        if changed is None:
            self._known.clear()
        else:
            self._known = {d: c for d, c in self._known.items() if c.account_id != changed}

    async def record_use(self) -> None:
        used, self.used = self.used, {}
        if used:
            try:
                await in_thread(_write_last_use, used)
            except (DatabaseError, Overloaded):
                self.used = used | self.used
                raise


def find_caller(digest: str) -> Caller | None:
    """One query, the same for an unknown and a revoked key, so that its time tells nothing."""
    key = (
        ApiKey.objects.usable(datetime.now(UTC))
        .of_active_users()
        .select_related("account__tier", "account__user")
        .filter(digest=digest)
        .first()
    )
    if key is None:
        return None
    tier = key.account.tier
    return Caller(
        account_id=key.account.pk,
        key_id=key.pk,
        username=key.account.user.get_username(),
        allowances=Allowances(tier.name, tier.requests_per_minute, tier.streams, tier.ai_calls_per_day),
        expires_at=key.expires_at.timestamp() if key.expires_at else None,
        is_demo=key.account.is_demo,
    )


def _write_last_use(used: dict[int, datetime]) -> None:
    for key_id, at in used.items():
        ApiKey.objects.filter(pk=key_id).update(last_used_at=at)


key_ring = KeyRing(feed)
