"""A stream of what is announced in the database: read in commit order, for all that listen or were away."""

import asyncio
import re
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET

from core.background import BackgroundLoop
from core.clock import now_ms
from core.fault_log import LastingFault
from core.threads import in_thread
from market.streams.hub.subscribers import Subscriber
from market.streams.protocol import subscriptions
from market.streams.protocol.messages import StreamKind, Subscribe

from .consumer import Following, Stream
from .wire import OutgoingFrame

AFTER_POSITION = "after:"
LATEST = 2**63 - 1
DIGITS = re.compile("[0-9]{1,18}")

# Less than may wait for a slow reader.
CHUNK = 500
RETRY_S = 0.25

# After a restart everybody asks for what they missed. Each portion takes a thread of those that the API has.
LOOKING_BACK_AT_ONCE = 2

# A client that asks again and again, also over new connections, would take the cores from all others. A full
# portion is followed by a pause this many times as long as it took.
RESTS_FOR = 4


class Announced(NamedTuple):
    position: int
    topics: frozenset[str]
    """What it is about; without topics it reaches no client."""
    frame: bytes


Read = Callable[[int, int, int], Awaitable[list[Announced]]]
"""Announcements after the first position up to the second, in commit order, at most as many as the third
says."""


def read_in_thread(read: Callable[[int, int, int], list[Announced]]) -> Read:
    async def read_there(after: int, upto: int, limit: int) -> list[Announced]:
        return await in_thread(read, after, upto, limit)

    return read_there


def since_of(position: int) -> str:
    """The `since` of a client that has received nothing yet."""
    return f"{AFTER_POSITION}{position}"


def whole_number(text: str) -> int | None:
    return int(text) if DIGITS.fullmatch(text) else None


class Missed(NamedTuple):
    """A portion of what a client missed."""

    after: int
    """The position after which it continues."""
    upto: int
    """The position up to which it was read, unless the portion is full."""
    found: list[Announced]


class AnnouncedStream(Stream):
    """Control events only say that there is something to read; what is sent, and in which order, is in the
    database. So nothing is lost while the database is away, and nothing comes twice."""

    def __init__(self, kind: StreamKind, read: Read, fault: LastingFault, chunk: int = CHUNK) -> None:
        super().__init__(kind)
        self.position = 0
        """The position of the last announcement that the hub was given."""
        self._read, self._chunk = read, chunk
        self._renew_locks()
        self._loop = BackgroundLoop(
            f"stream of {kind.name}",
            self.send_new,
            fault=fault,
            broke=f"What was announced on {kind.path} could not be sent, trying again",
            before=self._woken,
            again=self._try_again,
        )

    @abstractmethod
    def last_position(self) -> int:
        """Of all that was announced. Called in a thread, like the next one."""

    @abstractmethod
    def position_of(self, since: str) -> int | None:
        """The position of what a client had last; None if it is unknown or too old."""

    def concerns(self, topics: frozenset[str] | set[str], announced: Announced) -> bool:
        """Whether a client with these topics receives it."""
        return not announced.topics.isdisjoint(topics)

    def recipients(self, announced: Announced) -> Iterable[str]:
        """The topics whose clients receive it. No client may have two of them."""
        return announced.topics

    async def start(self) -> None:
        """Start after the control events, so that whatever is announced from now on wakes it."""
        self._renew_locks()
        self.position = await in_thread(self.last_position)
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        self.clear()

    def _renew_locks(self) -> None:
        self._wake, self._sending = asyncio.Event(), asyncio.Lock()
        self._looking_back = asyncio.Semaphore(LOOKING_BACK_AT_ONCE)

    async def find(self, since: str) -> int | None:
        async with self._looking_back:
            return await in_thread(self.position_of, since)

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
                    outgoing = OutgoingFrame(announced.frame, 0, sent_ms)
                    self.publish(outgoing, *self.recipients(announced))

    async def look_back(self, after: int) -> Missed:
        if after > self.position:
            # Another process sent it, which is ahead of this one.
            await self.send_new()
        async with self._looking_back:
            upto, began_s = self.position, time.perf_counter()
            found = await self._read(after, upto, self._chunk) if after < upto else []
            took_s = time.perf_counter() - began_s
        await asyncio.sleep(RESTS_FOR * took_s * len(found) / self._chunk)
        return Missed(after, upto, found)

    async def subscribe(self, client: Following, message: Subscribe) -> None:
        missed: Missed | None = None
        # A message that a client sent before it hung up is still handled, but without a read.
        if message.since is not UNSET and client.subscriber.is_open:
            position = await self.find(message.since)
            if position is not None:
                # Before the reply, because a client that was promised a continuation must get it.
                missed = await self.look_back(position)
        if not client.is_open:
            return
        change, wanted = client.add(message), client.subscriptions
        unrecovered = wanted.symbols if missed is None else []
        client.say(
            subscriptions.subscribed(
                self.kind.name,
                wanted.symbols,
                change.rejected,
                now_ms(),
                message.id,
                categories=wanted.shown_categories,
                since=since_of(self.position if missed is None else missed.after),
                unrecovered=UNSET if message.since is UNSET else unrecovered,
            )
        )
        if missed is None:
            client.listen()
        elif client.is_open:
            await self.replay(client.subscriber, missed, self.topics_of(wanted), self.variant_of(wanted))

    async def replay(self, subscriber: Subscriber, missed: Missed, topics: set[str], variant: int) -> None:
        """Send what `topics` add to what the subscriber received, then let the hub continue from there."""
        hub = self.hub_of(subscriber)
        had = hub.topics_of(subscriber)
        await subscriber.drained()
        # A client that already receives all of it, and asks again and again, causes no read.
        while subscriber.is_open and not topics <= had:
            _, upto, found = missed
            send(
                subscriber,
                [each for each in found if self.concerns(topics, each) and not self.concerns(had, each)],
                variant,
                hub.written,
            )
            after = upto if len(found) < self._chunk else found[-1].position
            if after >= self.position:
                break
            await subscriber.drained()
            if subscriber.is_open:
                missed = await self.look_back(after)
        # There was no await since the comparison, so nothing was sent meanwhile.
        hub.subscribe(subscriber, topics, variant)

    def wake(self, facts: dict[str, Any]) -> None:
        self._wake.set()

    async def _woken(self) -> None:
        await self._wake.wait()
        self._wake.clear()

    async def _try_again(self) -> None:
        await asyncio.sleep(RETRY_S)
        self._wake.set()


def send(
    subscriber: Subscriber, missed: list[Announced], variant: int, written: Callable[[bytes], bytes]
) -> None:
    sent_ms = now_ms()
    if missed:
        subscriber.send(
            b"".join(written(OutgoingFrame(each.frame, 0, sent_ms).payload(variant)) for each in missed)
        )
