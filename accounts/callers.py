"""From the rows of an account to who is calling."""

from __future__ import annotations

from .models import Account
from .tiers import Allowances, Caller


def caller_of(account: Account, *, key_id: int, expires_at: float | None) -> Caller:
    tier = account.tier
    return Caller(
        account_id=account.pk,
        key_id=key_id,
        username=account.user.get_username(),
        allowances=Allowances(tier.name, tier.requests_per_minute, tier.streams, tier.ai_calls_per_day),
        expires_at=expires_at,
        is_demo=account.is_demo,
    )
