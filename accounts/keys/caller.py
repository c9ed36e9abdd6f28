"""Who is calling and what they may use, as plain values, and how the database finds them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from django.conf import settings
from django.core.signing import BadSignature, Signer

from accounts.models import Account, ApiKey, PageSession, Tier

# No API key has this number, so ending a key never ends a page.
NO_KEY = 0

# The limits of our own pages on every tier: for all of an account's, or for all visitors from one address.
PAGE_REQUESTS, PAGE_STREAMS = 120, 20


def of_keys(account_id: int) -> str:
    """What the requests and streams of an account's keys are counted under."""
    return str(account_id)


def is_of_keys(counted_under: str) -> bool:
    return counted_under.isdigit()


OF_VISITORS = "visitors:"


def of_pages(account_id: int, visitor_from: str = "") -> str:
    """The same for our own pages."""
    return f"{OF_VISITORS}{visitor_from}" if visitor_from else f"pages:{account_id}"


class Allowances(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a tier, or of our own pages."""

    tier: str
    """The account's, for pages too: it says how many AI calls they have."""
    requests: int
    streams: int
    ai_calls: int
    archive: bool = False


class Caller(msgspec.Struct, frozen=True):
    """The account that a request comes from, known by one of its keys."""

    account_id: int
    key_id: int
    username: str
    allowances: Allowances
    expires_at: float | None
    is_demo: bool
    counted_under: str
    """Callers for whom this is equal share a window of requests and slots of streams."""

    @property
    def is_page(self) -> bool:
        """One of our own pages, on behalf of its visitor."""
        return self.key_id == NO_KEY

    @property
    def ai_calls_of(self) -> int | str:
        """Whose AI calls count: the account's, or those of all visitors from one network."""
        network = self.counted_under.removeprefix(OF_VISITORS)
        return self.account_id if network == self.counted_under else network

    @property
    def policy(self) -> str:
        """What the limits of its requests are called in headers."""
        return "pages" if self.is_page else self.allowances.tier

    @classmethod
    def from_account(cls, account: Account, *, key_id: int, expires_at: float | None) -> Caller:
        return cls(
            account_id=account.pk,
            key_id=key_id,
            username=account.user.get_username(),
            allowances=allowances_of(account.tier),
            expires_at=expires_at,
            is_demo=account.is_demo,
            counted_under=of_keys(account.pk),
        )

    def on_page(self, visitor_from: str) -> Caller:
        """The same account's, on one of our own pages."""
        return msgspec.structs.replace(
            self,
            key_id=NO_KEY,
            allowances=msgspec.structs.replace(
                self.allowances, requests=PAGE_REQUESTS, streams=PAGE_STREAMS, archive=False
            ),
            counted_under=of_pages(self.account_id, visitor_from),
        )


def allowances_of(tier: Tier) -> Allowances:
    return Allowances(
        tier=tier.name,
        requests=tier.requests_per_minute,
        streams=tier.streams,
        ai_calls=tier.ai_calls_per_day,
        archive=tier.archive,
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
    if found is None or session is None or (found.account.is_visitor and not settings.PUBLIC_TERMINAL):
        return None
    account, expires_at = found.account, session.expire_date.timestamp()
    return Caller.from_account(account, key_id=NO_KEY, expires_at=expires_at).on_page(account.visitor_from)


# Keys of our own pages, signed: of which login and until when. POST /page-token issues one to the page that
# asks, good for five minutes and for as long as it asks again.
BROWSER_TOKEN_LEAD = "pt_"  # noqa: S105 - how each begins
LIVES_S = 300
MAX_LENGTH = 100


class BrowserToken(NamedTuple):
    page_session: int
    ends_at: int
    """Epoch seconds."""

    @property
    def has_ended(self) -> bool:
        return self.ends_at <= time.time()


def _signer() -> Signer:
    return Signer(salt="accounts.page_tokens", sep=".")


def issue_browser_token(page_session: int) -> tuple[str, BrowserToken]:
    token = BrowserToken(page_session, int(time.time()) + LIVES_S)
    return BROWSER_TOKEN_LEAD + _signer().sign(f"{token.page_session}-{token.ends_at}"), token


def read_browser_token(text: str) -> BrowserToken | None:
    """None for what we did not sign. A token may have ended."""
    if not text.startswith(BROWSER_TOKEN_LEAD) or len(text) > MAX_LENGTH or not text.isascii():
        return None
    try:
        signed = _signer().unsign(text.removeprefix(BROWSER_TOKEN_LEAD))
    except BadSignature:
        return None
    page_session, ends_at = signed.split("-")
    return BrowserToken(int(page_session), int(ends_at))
