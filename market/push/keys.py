"""Ingest keys: issued, changed and revoked, with an event to every process in the same transaction; and why
what they send is refused."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.key_text import generate_key, prefix_of
from accounts.keys import MarkedKeyCache
from accounts.limits import throttle
from accounts.models import Account
from accounts.rights import PowerRefused
from accounts.secrets import hashed
from core.contract.errors import ApiError
from core.events.event_feed import feed
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import Instrument
from market.models import IngestKey
from market.own_prices import note, refuse_open

# Why a tick is not accepted, and why a whole message is not. One table for HTTP, sockets and the docs.
MAX_TICKS = 1_000
MAX_BYTES = 1_048_576
REASONS = {
    "malformed": "The tick has a wrong or missing field.",
    "symbol_not_allowed": "This key may not send ticks of this symbol.",
    "unknown_symbol": "There is no active instrument with this symbol.",
    "not_its_source": "The instrument names other sources: write push as its source in the back office.",
    "standby": "Another source prices this instrument now; this one takes over when that one falls silent.",
    "not_finite": "Prices and volume must be finite numbers.",
    "not_positive": "Prices must be above 0 and the volume must not be below 0.",
    "crossed": "The ask is below the bid.",
    "too_high": "A price or the volume is too high: it must be below 10,000,000,000.",
    "future": "The time is more than 5 seconds ahead of this service's clock.",
    "duplicate": "A tick with this or a later seq was accepted before, or one with the same time and values.",
    "older_than_last": "A later tick of this instrument and minute was accepted before.",
    "too_late": "The minute of this tick is closed and cannot change any more.",
    "outlier": (
        "The price is too far from the last one, until three ticks in a row agree on it; or `price` is too "
        "far from the tick's own bid and ask."
    ),
    "not_running": "The market engine is not running.",
    "market_closed": "The instrument's market is closed at this time.",
}


def sentence(code: str) -> str:
    return REASONS.get(code, "The tick was refused.")


class InvalidMessage(ApiError):
    """Nothing of the message was accepted."""

    status_code, code = 400, "invalid_message"


class TooLarge(ApiError):
    status_code, code = 413, "too_large"

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"Send at most {most:,} {what} in one message.", max=most)


class TooSlow(ApiError):
    status_code, code = 408, "body_timeout"
    message = "The body did not end in time. Send it at once."

    def __init__(self) -> None:
        super().__init__()
        # The rest of the body must not be read as the next request.
        self.headers["Connection"] = "close"


class MissingIngestKey(ApiError):
    status_code, code = 401, "missing_ingest_key"
    message = "Send an ingest key: Authorization: Bearer tw_ingest_…, or X-Ingest-Key."


class InvalidIngestKey(ApiError):
    status_code, code = 401, "invalid_ingest_key"
    message = "This ingest key is not valid. Staff issue them in the back office; API keys do not work here."


class AuthTimeout(ApiError):
    status_code, code = 408, "auth_timeout"
    message = "No ingest key came in time. Connect again and send it first."


class Flood(ApiError):
    status_code, code = 429, "too_many_messages"
    message = "Send at most 100 pings and pongs a second. Connect again."


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


def revoke_all_of(account: Account, **_: Any) -> Callable[..., None]:
    """The keys that would open something still when the account is gone."""
    keys = list(account.ingest_keys.filter(revoked_at=None))

    def revoke(*, by: str) -> None:
        for key in keys:
            revoke_ingest_key(key, by=by)

    return revoke


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
        raise InvalidIngestKey() if key else MissingIngestKey()
    return source
