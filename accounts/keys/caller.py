"""Who is calling and what they may use, as plain values, and how the database finds them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from django.conf import settings

from accounts.models import Account, ApiKey, PageSession

# No API key has this number, so the end of none is the end of a page.
NO_KEY = 0


class Allowances(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a tier."""

    tier: str
    requests: int
    streams: int
    ai_calls: int


class Caller(msgspec.Struct, frozen=True):
    """The account that a request comes from, known by one of its keys."""

    account_id: int
    key_id: int
    username: str
    allowances: Allowances
    expires_at: float | None
    is_demo: bool

    @property
    def is_page(self) -> bool:
        """One of our own pages, which asks for whoever is looking at it."""
        return self.key_id == NO_KEY

    @classmethod
    def from_account(cls, account: Account, *, key_id: int, expires_at: float | None) -> Caller:
        tier = account.tier
        return cls(
            account_id=account.pk,
            key_id=key_id,
            username=account.user.get_username(),
            allowances=Allowances(
                tier=tier.name,
                requests=tier.requests_per_minute,
                streams=tier.streams,
                ai_calls=tier.ai_calls_per_day,
            ),
            expires_at=expires_at,
            is_demo=account.is_demo,
        )


def find_caller(digests: Sequence[str]) -> Caller | None:
    """By one of the digests that a key has with the peppers there are."""
    key = (
        ApiKey.objects.usable(datetime.now(UTC))
        .of_active_users()
        .select_related("account__tier", "account__user")
        .filter(digest__in=digests)
        .first()
    )
    if key is None:
        return None
    expires_at = key.expires_at.timestamp() if key.expires_at else None
    return Caller.from_account(key.account, key_id=key.pk, expires_at=expires_at)


def find_browser_caller(page_session: int) -> Caller | None:
    found = (
        PageSession.objects.filter(pk=page_session, account__user__is_active=True)
        .select_related("account__tier", "account__user")
        .first()
    )
    session = None if found is None else found.session()
    if found is None or session is None or (found.account.is_visitor and not settings.DEMO):
        return None
    return Caller.from_account(found.account, key_id=NO_KEY, expires_at=session.expire_date.timestamp())
