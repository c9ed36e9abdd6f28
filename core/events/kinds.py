"""The kinds of control events, which of them are urgent, and the words that pages show for their facts."""

from collections.abc import Mapping
from enum import StrEnum


class EventKind(StrEnum):
    """The texts are stored in the outbox, so a new name keeps its old text."""

    KEY_ISSUED = "key.issued"
    KEY_ROLLED = "key.rolled"
    KEY_REVOKED = "key.revoked"
    INGEST_KEY_ISSUED = "ingest_key.issued"
    INGEST_KEY_CHANGED = "ingest_key.changed"
    INGEST_KEY_REVOKED = "ingest_key.revoked"
    ACCOUNT_CHANGED = "account.changed"
    TIER_CHANGED = "tier.changed"
    TIER_ASKED = "tier.asked"
    TIER_WITHDRAWN = "tier.withdrawn"
    TIER_DECLINED = "tier.declined"
    PUBLISHING_ASKED = "publishing.asked"
    PUBLISHING_WITHDRAWN = "publishing.withdrawn"
    PUBLISHING_ACCEPTED = "publishing.accepted"
    PUBLISHING_DECLINED = "publishing.declined"
    PUBLISHING_GRANTED = "publishing.granted"
    PUBLISHING_REVOKED = "publishing.revoked"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 - no password
    SESSION_ENDED = "session.ended"
    FACTOR_ADDED = "factor.added"
    FACTOR_REMOVED = "factor.removed"
    FACTOR_RENEWED = "factor.renewed"
    RECOVERY_CODE_USED = "recovery_code.used"
    ADDRESS_ADDED = "address.added"
    ADDRESS_CONFIRMED = "address.confirmed"
    ADDRESS_REMOVED = "address.removed"
    ADDRESS_PREFERRED = "address.preferred"
    STREAM_CLOSED = "stream.closed"
    INSTRUMENTS_CHANGED = "instruments.changed"
    CANDLES_IMPORTED = "market.candles_imported"
    SIGNAL_PUBLISHED = "signal.published"
    SIGNAL_CLOSED = "signal.closed"
    SIGNAL_CANCELLED = "signal.cancelled"
    CLOSE_REQUESTED = "signal.close_requested"
    NEWS_PUBLISHED = "news.published"
    SIGNALS_REMOVED = "signals.removed"
    DATABASE_RESTORED = "database.restored"
    BEGAN_ANEW = "events.began_anew"
    """Never stored: the database has become an older one, so nothing learnt from events holds."""


# These are sent over Redis in full, so that they take effect while the database is away.
ENDS_ACCESS = frozenset(
    (
        *(EventKind.KEY_REVOKED, EventKind.KEY_ROLLED),
        *(EventKind.INGEST_KEY_REVOKED, EventKind.INGEST_KEY_CHANGED),
        *(EventKind.ACCOUNT_CHANGED, EventKind.SESSION_ENDED, EventKind.PASSWORD_CHANGED),
    )
)
# These take effect within two seconds, whatever else is being handled.
IN_TIME = ENDS_ACCESS | {EventKind.TIER_CHANGED}

FACT_WORDS: dict[str, Mapping[str, str]] = {}
"""What pages show for the codes in an event's facts, by the name of the fact. Rooms add theirs in `ready`."""


def word_for(name: str, value: str) -> str:
    return value.title() if name == "tier" else FACT_WORDS.get(name, {}).get(value, value)
