"""Ingest keys: issued, changed and revoked, with an event to every process in the same transaction."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.key_text import generate_key, prefix_of
from accounts.keys import MarkedKeyCache
from accounts.limits import throttle
from accounts.models import Account
from accounts.peppers import hashed
from accounts.rights import PowerRefused
from core.events.event_feed import feed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import Instrument
from market.models import IngestKey
from market.own_prices import note, refuse_open

from .refusals import InvalidIngestKey, MissingIngestKey


def sent_key(scope: dict[str, Any]) -> str | None:
    """`X-Ingest-Key: tw_ingest_…` or `Authorization: Bearer tw_ingest_…`."""
    for name, value in scope["headers"]:
        if name == b"x-ingest-key":
            return str(value, "latin-1")
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].strip(), "latin-1")
    return None


LEAD = "tw_ingest_"


@transaction.atomic
def issue_ingest_key(
    name: str, symbols: str = "", *, by: str, account: Account | None = None
) -> tuple[IngestKey, str]:
    """Make a key of the account, or of the operator, and return it with its secret, which is not kept. Raises
    PowerRefused if the account has open signals there."""
    if account is not None:
        refuse_open(account.user, symbols)
    secret = generate_key(LEAD)
    key = IngestKey.objects.create(
        name=name,
        symbols=symbols,
        account=account,
        prefix=prefix_of(secret, LEAD),
        **hashed(secret),
    )
    _publish(EventKind.INGEST_KEY_ISSUED, key, by)
    return key, secret


REVOKED = "This key was revoked, and what it could send is kept as it was: issue another one."


def refuse_change(key: IngestKey, symbols: str, account: Account | None) -> None:
    """Raises PowerRefused unless the key may send these from now on, and belong to this account."""
    if key.revoked_at is not None:
        raise PowerRefused(REVOKED)
    if account is not None:
        refuse_open(account.user, symbols)


@transaction.atomic
def allow_symbols(key: IngestKey, symbols: str, *, by: str, account: Account | None = None) -> None:
    """And give it to the account, if it has had none."""
    stored = IngestKey.objects.select_for_update(of=("self",)).select_related("account__user").get(pk=key.pk)
    owner = stored.account or account
    refuse_change(stored, symbols, owner)
    if stored.account is not None and stored.symbols != symbols:
        note(stored.account.user, stored.symbols)
    IngestKey.objects.filter(pk=key.pk).update(symbols=symbols, account=owner)
    _publish(EventKind.INGEST_KEY_CHANGED, key, by)


@transaction.atomic
def revoke_ingest_key(key: IngestKey, *, by: str) -> bool:
    """End a key everywhere. False if it was revoked before."""
    if not IngestKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    _publish(EventKind.INGEST_KEY_REVOKED, key, by)
    return True


def revocations_of(account: Account) -> list[Callable[..., object]]:
    """Of the keys that would open something still when the account is gone."""
    return [partial(revoke_ingest_key, key) for key in account.ingest_keys.filter(revoked_at=None)]


def check_symbols(text: str) -> str:
    """Symbols as people type them, in the form that is stored."""
    wanted = sorted({symbol.upper() for symbol in text.replace(",", " ").split()})
    known = set(Instrument.objects.filter(symbol__in=wanted).values_list("symbol", flat=True))
    if unknown := [symbol for symbol in wanted if symbol not in known]:
        raise ValidationError(f"There is no instrument {', '.join(unknown)}.")
    return " ".join(wanted)


def _publish(kind: EventKind, key: IngestKey, by: str) -> None:
    ControlEvent.objects.publish(kind, by=by, key=key.pk, prefix=key.prefix, mark=key.mark)


class PushSource(msgspec.Struct, frozen=True):
    """The sender of pushed ticks, as its key describes it."""

    key_id: int
    name: str
    symbols: frozenset[str]
    """What it may send; empty for all."""
    public_id: str
    account_id: int | None = None
    expires_at: float | None = None

    @property
    def origin(self) -> str:
        return f"push:{self.name}"


class IngestKeyCache(MarkedKeyCache[PushSource]):
    lead = LEAD
    model = IngestKey

    def look_up(self, digests: Sequence[str]) -> PushSource | None:
        keys = IngestKey.objects.filter(digest__in=digests, revoked_at=None)
        key = keys.exclude(account__user__is_active=False).first()
        if key is None:
            return None
        symbols = frozenset(key.symbols.split())
        return PushSource(key.pk, key.name, symbols, key.prefix, key.account_id)

    def drop(self, facts: dict[str, Any]) -> None:
        """A key was changed, or an account that has some."""
        about = facts.get("key"), facts.get("account", "")
        self.forget(lambda source: source.key_id == about[0] or source.account_id == about[1])


ingest_key_cache = IngestKeyCache(feed)


async def identify(key: str | None, address: str) -> PushSource:
    source = await ingest_key_cache.find(key) if key else None
    if source is None:
        await throttle.count_failure(address, "ingest key")
        error = InvalidIngestKey() if key else MissingIngestKey()
        error.headers["WWW-Authenticate"] = "Bearer"
        raise error
    return source
