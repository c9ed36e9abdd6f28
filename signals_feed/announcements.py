"""What the stream tells of a signal: read from the database, encoded as REST does it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.utils import timezone

from accounts.api import encode
from market.streams.messages import ALL
from market.streams.outgoing import SENT, Outgoing
from market.streams.subscriptions import Subscriptions

from .items import COLUMNS, describe
from .models import LIFETIME, Announcement

CLOSED = "closed/"
AFTER_CLOSURE = "closed:"
AFTER_POSITION = "after:"
# As long as a signal lives that nothing else closes.
REPLAYED_FOR = LIFETIME
LATEST = 2**63 - 1
DIGITS = re.compile("[0-9]{1,18}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Announced(NamedTuple):
    position: int
    topics: frozenset[str]
    """Of which a client has one, if it is to hear of it."""
    frame: bytes

    def outgoing(self, sent_ms: int) -> Outgoing:
        return Outgoing(self.frame, 0, sent_ms)


def topics_of(subscribed: Subscriptions) -> set[str]:
    names = subscribed.symbols
    if "signal.closed" not in subscribed.events:
        return set(names)
    return {*names, *(CLOSED + name for name in names)}


def variant_of(subscribed: Subscriptions) -> int:
    """Frames have no numbers here: those of the outbox have holes where nothing was lost."""
    return SENT * ("lag" in subscribed.features)


def read(after: int, upto: int, limit: int) -> list[Announced]:
    columns = [f"signal__{name}" for name in COLUMNS]
    rows = Announcement.objects.between(after, upto).values_list("position", "kind", *columns)
    return [announced(*row) for row in rows[:limit]]


def announced(position: int, kind: str, *row: Any) -> Announced:
    """A signal may be closed by the time its publication is told: its terms are still the same."""
    signal = dict(zip(COLUMNS, row, strict=True))
    symbol: str = signal["instrument__symbol"]
    if kind == Announcement.Kind.CLOSED:
        item = {"type": "signal.closed", **describe(*row), "time": time_ms(signal["closed_at"])}
        return Announced(position, frozenset((CLOSED + symbol, CLOSED + ALL)), encode(item))
    item = describe(*(signal | {"status": "active"}).values())
    del item["status"]
    item["time"] = time_ms(signal["published_at"])
    return Announced(position, frozenset((symbol, ALL)), encode(item))


def last_position() -> int:
    return Announcement.objects.last_position()


def place(position: int) -> str:
    """What a client says in `since` that has heard of no signal yet."""
    return f"{AFTER_POSITION}{position}"


def position_of(since: str) -> int | None:
    """Where a client goes on that had this last: a signal, its end or a place; None where nobody can say."""
    if since.startswith(AFTER_POSITION):
        return _position_of_place(since.removeprefix(AFTER_POSITION))
    return _position_of_signal(since)


def _position_of_place(digits: str) -> int | None:
    if not DIGITS.fullmatch(digits):
        return None
    position = int(digits)
    return position if Announcement.objects.is_whole_after(position, timezone.now() - REPLAYED_FOR) else None


def _position_of_signal(signal_id: str) -> int | None:
    is_closure = signal_id.startswith(AFTER_CLOSURE)
    try:
        wanted = UUID(signal_id.removeprefix(AFTER_CLOSURE))
    except ValueError:
        return None
    kind = Announcement.Kind.CLOSED if is_closure else Announcement.Kind.PUBLISHED
    return Announcement.objects.position_of(wanted, kind, timezone.now() - REPLAYED_FOR)


def time_ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)
