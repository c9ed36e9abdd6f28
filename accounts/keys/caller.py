"""Who is calling and what they may use, as plain values."""

from __future__ import annotations

import msgspec

from accounts.models import Account


class Allowances(msgspec.Struct, frozen=True):
    """The limits of a tier."""

    tier: str
    requests: int
    streams: int
    ai_calls: int


class Caller(msgspec.Struct, frozen=True):
    """An account at the door, known by one of its keys."""

    account_id: int
    key_id: int
    username: str
    allowances: Allowances
    expires_at: float | None
    is_demo: bool

    @classmethod
    def from_account(cls, account: Account, *, key_id: int, expires_at: float | None) -> Caller:
        tier = account.tier
        return cls(
            account_id=account.pk,
            key_id=key_id,
            username=account.user.get_username(),
            allowances=Allowances(tier.name, tier.requests_per_minute, tier.streams, tier.ai_calls_per_day),
            expires_at=expires_at,
            is_demo=account.is_demo,
        )
