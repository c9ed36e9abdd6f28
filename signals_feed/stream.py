"""The stream /ws/signals: announced signals, in commit order, to all that listen or were away."""

import logging
from uuid import UUID

from django.utils import timezone

from core.fault_log import LastingFault
from market.streams.announced_stream import (
    AFTER_POSITION,
    CHUNK,
    Announced,
    AnnouncedStream,
    Read,
    read_in_thread,
    whole_number,
)
from market.streams.asyncapi import Channel
from market.streams.protocol.messages import ALL, SIGNALS
from market.streams.protocol.subscriptions import Subscriptions
from signals_feed.models import LIFETIME, Announcement
from signals_feed.wire import (
    CLOSURE_SAMPLE,
    COLUMNS,
    NEW_SAMPLE,
    NewSignal,
    SignalClosed,
    SignalRow,
    encode_closure,
    encode_new_signal,
)

CHANNEL = Channel(
    SIGNALS,
    "Signals",
    "Every signal when it is published. Without `symbols`, you receive those of all instruments.",
    (NewSignal, SignalClosed),
    {
        NewSignal: {"Published": NEW_SAMPLE},
        SignalClosed: {"Target reached": CLOSURE_SAMPLE},
    },
)
CLOSED = "closed/"
AFTER_CLOSURE = "closed:"

# The lifetime of a signal that nothing else closes.
REPLAYED_FOR = LIFETIME
ROW = [f"signal__{name}" for name in COLUMNS]


def read(after: int, upto: int, limit: int) -> list[Announced]:
    """Announcements after the first position up to the last, in commit order."""
    announcements = Announcement.objects.filter(position__gt=after, position__lte=upto)
    rows = announcements.order_by("position").values_list("position", "kind", *ROW)
    found = []
    for position, kind, *columns in rows[:limit]:
        row = SignalRow(*columns)
        is_closure = kind == Announcement.Kind.CLOSED
        prefix, encoded = (CLOSED, encode_closure(row)) if is_closure else ("", encode_new_signal(row))
        found.append(Announced(position, frozenset((prefix + row.symbol, prefix + ALL)), encoded))
    return found


def position_of(since: str) -> int | None:
    """The position of what a client had last, a signal, its end or a position; None if it is unknown."""
    announcements, replayed_since = Announcement.objects, timezone.now() - REPLAYED_FOR
    if since.startswith(AFTER_POSITION):
        position = whole_number(since.removeprefix(AFTER_POSITION))
        is_known = position is not None and announcements.can_replay_after(position, replayed_since)
        return position if is_known else None
    try:
        signal = UUID(since.removeprefix(AFTER_CLOSURE))
    except ValueError:
        return None
    is_closure = since.startswith(AFTER_CLOSURE)
    kind = Announcement.Kind.CLOSED if is_closure else Announcement.Kind.PUBLISHED
    return announcements.position_of(signal, kind, replayed_since)


read_announced = read_in_thread(read)
logger = logging.getLogger(__name__)
announcements_wait = LastingFault(logger, "Announced signals wait for the database")


class SignalStream(AnnouncedStream):
    def __init__(self, read: Read = read_announced, chunk: int = CHUNK) -> None:
        super().__init__(SIGNALS, read, announcements_wait, chunk)

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        names = subscribed.symbols
        if "signal.closed" not in subscribed.events:
            return set(names)
        return {*names, *(CLOSED + name for name in names)}

    def symbols_of(self, topics: frozenset[str]) -> set[str]:
        return {topic for topic in topics if not topic.startswith(CLOSED)}

    def last_position(self) -> int:
        return Announcement.objects.last_position()

    def position_of(self, since: str) -> int | None:
        return position_of(since)


signals = SignalStream()
