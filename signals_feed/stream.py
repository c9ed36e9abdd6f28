"""The stream /ws/signals: announced signals, in commit order, to all that listen or were away."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from uuid import UUID

from django.utils import timezone
from msgspec import UNSET

from core.background import BackgroundLoop
from core.clock import now_ms
from core.fault_log import LastingFault
from core.threads import in_thread
from market.streams.docs.asyncapi import Channel
from market.streams.hub.subscribers import Subscriber
from market.streams.market_streams import is_known
from market.streams.protocol import replies
from market.streams.protocol.messages import ALL, SIGNALS, AnyMessage, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.sessions.session import StreamSession
from market.streams.stream import Stream
from market.streams.wire import OutgoingFrame
from serving.websocket.framing import frame
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
    "Every signal that is published. Without `symbols`: of all instruments.",
    (NewSignal, SignalClosed),
    {
        NewSignal: {"Published": NEW_SAMPLE},
        SignalClosed: {"Target reached": CLOSURE_SAMPLE},
    },
)
CLOSED = "closed/"
AFTER_CLOSURE = "closed:"
AFTER_POSITION = "after:"

# The lifetime of a signal that nothing else closes.
REPLAYED_FOR = LIFETIME
LATEST = 2**63 - 1
DIGITS = re.compile("[0-9]{1,18}")


class Announced(NamedTuple):
    position: int
    topics: frozenset[str]
    """A client that has one of them hears of it."""
    frame: bytes


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


def since_of(position: int) -> str:
    """The `since` of a client that has not heard of any signal yet."""
    return f"{AFTER_POSITION}{position}"


def position_of(since: str) -> int | None:
    """The position of what a client had last, a signal, its end or a position; None if it is unknown."""
    announcements, replayed_since = Announcement.objects, timezone.now() - REPLAYED_FOR
    if since.startswith(AFTER_POSITION):
        digits = since.removeprefix(AFTER_POSITION)
        known = DIGITS.fullmatch(digits) and announcements.can_replay_after(int(digits), replayed_since)
        return int(digits) if known else None
    try:
        signal = UUID(since.removeprefix(AFTER_CLOSURE))
    except ValueError:
        return None
    is_closure = since.startswith(AFTER_CLOSURE)
    kind = Announcement.Kind.CLOSED if is_closure else Announcement.Kind.PUBLISHED
    return announcements.position_of(signal, kind, replayed_since)


logger = logging.getLogger(__name__)
announcements_wait = LastingFault(logger, "Announced signals wait for the database")
Read = Callable[[int, int, int], Awaitable[list[Announced]]]

# Less than may wait for a slow reader.
CHUNK = 500
RETRY_S = 0.25


async def read_in_thread(after: int, upto: int, limit: int) -> list[Announced]:
    return await in_thread(read, after, upto, limit)


class Missed(NamedTuple):
    """A portion of what a client missed."""

    upto: int
    """The position up to which it was read, unless the portion is full."""
    found: list[Announced]


class SignalStream(Stream):
    """Control events only say that there is something to read; what is sent, and in which order, is in the
    database. So nothing is lost while the database is away, and nothing comes twice."""

    def __init__(self, read: Read = read_in_thread, chunk: int = CHUNK) -> None:
        super().__init__(SIGNALS)
        self.position = 0
        """The position of the last announcement that the hub was given."""
        self._read, self._chunk = read, chunk
        self._wake, self._sending = asyncio.Event(), asyncio.Lock()
        self._loop = BackgroundLoop(
            "signal stream",
            self.send_new,
            fault=announcements_wait,
            broke="Announced signals could not be told, trying again",
            before=self._woken,
            again=self._try_again,
        )

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        names = subscribed.symbols
        if "signal.closed" not in subscribed.events:
            return set(names)
        return {*names, *(CLOSED + name for name in names)}

    def symbols_of(self, topics: frozenset[str]) -> set[str]:
        return {topic for topic in topics if not topic.startswith(CLOSED)}

    async def start(self) -> None:
        """Start after the control events, so that whatever is announced from now on wakes it."""
        self._wake, self._sending = asyncio.Event(), asyncio.Lock()
        self.position = await in_thread(Announcement.objects.last_position)
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        self.clear()

    async def find(self, signal_id: str) -> int | None:
        return await in_thread(position_of, signal_id)

    async def send_new(self) -> None:
        """Send everything new to the clients that listen."""
        async with self._sending:
            is_more = True
            while is_more:
                found = await self._read(self.position, LATEST, self._chunk)
                # Whatever is committed after the read wakes it again.
                is_more = len(found) == self._chunk
                sent_ms = now_ms()
                for announced in found:
                    # Both in one step: a client that joins has either had it or will get it.
                    self.position = announced.position
                    self.hub.publish(OutgoingFrame(announced.frame, 0, sent_ms), *announced.topics)

    async def look_back(self, after: int) -> Missed:
        if after > self.position:
            # Another process sent it, which is ahead of this one.
            await self.send_new()
        upto = self.position
        return Missed(upto, await self._read(after, upto, self._chunk) if after < upto else [])

    async def replay(self, subscriber: Subscriber, missed: Missed, topics: set[str], variant: int) -> None:
        """Send what `topics` add to what the subscriber heard, then let the hub continue from there."""
        had = subscriber.topics
        await subscriber.drained()
        while subscriber.is_open:
            upto, found = missed
            send(
                subscriber,
                [each for each in found if each.topics & topics and not each.topics & had],
                variant,
            )
            after = upto if len(found) < self._chunk else found[-1].position
            if after >= self.position:
                break
            await subscriber.drained()
            if subscriber.is_open:
                missed = await self.look_back(after)
        # There was no await since the comparison, so nothing was sent meanwhile.
        self.hub.subscribe(subscriber, topics, variant)

    def wake(self, facts: dict[str, Any]) -> None:
        self._wake.set()

    async def _woken(self) -> None:
        await self._wake.wait()
        self._wake.clear()

    async def _try_again(self) -> None:
        await asyncio.sleep(RETRY_S)
        self._wake.set()


def send(subscriber: Subscriber, missed: list[Announced], variant: int) -> None:
    sent_ms = now_ms()
    if missed:
        subscriber.send(
            b"".join(frame(OutgoingFrame(each.frame, 0, sent_ms).payload(variant)) for each in missed)
        )


signals = SignalStream()


class SignalsConsumer(StreamSession):
    stream = signals

    _goes_on_after: int | None = None
    """The position after which a returning client continues."""

    async def take(self, message: AnyMessage) -> None:
        self._goes_on_after, missed = None, None
        if isinstance(message, Subscribe) and message.since is not UNSET:
            await self.identity.show(message.api_key)
            self._goes_on_after = await signals.find(message.since)
            if self._goes_on_after is not None:
                # Before the reply, because a client that was promised a continuation must get it.
                missed = await signals.look_back(self._goes_on_after)
        await super().take(message)
        if missed is not None and self.is_open:
            topics, variant = signals.topics_of(self.subscriptions), signals.variant_of(self.subscriptions)
            await signals.replay(self.subscriber, missed, topics, variant)

    def subscribe(self, message: Subscribe) -> None:
        wanted = self.subscriptions
        change = wanted.subscribe(message, is_known)
        unrecovered = wanted.symbols if self._goes_on_after is None else []
        self.say(
            replies.subscribed(
                signals.kind.name,
                wanted.symbols,
                change.rejected,
                now_ms(),
                message.id,
                since=since_of(signals.position if self._goes_on_after is None else self._goes_on_after),
                unrecovered=UNSET if message.since is UNSET else unrecovered,
            )
        )
        if self._goes_on_after is None:
            self.listen()
