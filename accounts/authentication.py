"""Finding the caller behind an API key."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from . import keys
from .events import EventFeed, feed
from .models import ApiKey
from .rings import Ring
from .tiers import Allowances, Caller


class KeyRing(Ring[Caller]):
    lead = keys.LEAD
    model = ApiKey

    def __init__(self, events: EventFeed) -> None:
        super().__init__(events)
        for kind in ("key.revoked", "key.rolled", "account.changed", "tier.changed"):
            events.on(kind, self.drop)

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
    tier = key.account.tier
    return Caller(
        account_id=key.account.pk,
        key_id=key.pk,
        username=key.account.user.get_username(),
        allowances=Allowances(tier.name, tier.requests_per_minute, tier.streams, tier.ai_calls_per_day),
        expires_at=key.expires_at.timestamp() if key.expires_at else None,
        is_demo=key.account.is_demo,
    )


key_ring = KeyRing(feed)
