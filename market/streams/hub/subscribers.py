"""The connections of a hub, which of them get the same frames, and the frames that wait for a client because
it reads slowly or is sent what it missed."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

from serving.websocket.connection import NO_DESCRIPTOR, WebSocketConnection, count, frame

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

MOST_BYTES, MOST_FRAMES, STUCK_AFTER_S = 1024 * 1024, 2_000, 5.0

# How much is written at once: whatever the kernel does not take would only be copied.
PORTION_BYTES = 64 * 1024


class Publication(Protocol):
    @property
    def frame(self) -> bytes:
        """The text of a frame, for those who asked for no variant."""

    def payload(self, variant: int) -> bytes:
        """The text of a frame, for those who asked for this variant."""


class ReplaceablePublication(Publication, Protocol):
    """It can replace the earlier ones of its topic, for clients that asked for that."""

    def over(self, older: ReplaceablePublication) -> ReplaceablePublication:
        """This one, with what must be kept of an older one that is left out."""

    def notice(self, dropped: int) -> bytes:
        """The text that says how many were left out."""


def can_replace(message: Publication) -> TypeGuard[ReplaceablePublication]:
    return hasattr(message, "over")


class Backlog:
    """Frames in their order, none skipped, up to a bound."""

    def __init__(self, now: float, waiting: int) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = self._number = 0
        self._waiting, self._moved_at = waiting, now

    def put(self, frames: bytes) -> None:
        self._frames.append(frames)
        self._bytes += len(frames)
        self._number += count(frames)

    def take(self) -> bytes:
        """The next portion; empty if nothing waits."""
        taken: list[bytes] = []
        size = 0
        while self._frames and size < PORTION_BYTES:
            frames = self._frames.popleft()
            taken.append(frames)
            size += len(frames)
            self._number -= count(frames)
        self._bytes -= size
        return b"".join(taken)

    def moved(self, now: float, waiting: int) -> None:
        self._waiting, self._moved_at = waiting, now

    def is_too_long(self, waiting: int) -> bool:
        """`waiting` is what the connection itself still holds."""
        return self._number > MOST_FRAMES or self._bytes + waiting > MOST_BYTES

    def is_stuck(self, now: float, waiting: int, after_s: float = STUCK_AFTER_S) -> bool:
        if waiting < self._waiting:
            self._moved_at = now
        self._waiting = waiting
        return now - self._moved_at >= after_s


class LatestBacklog(Backlog):
    """Keeps the newest message of each topic. Replies are all kept, and go first."""

    def __init__(self, now: float, waiting: int) -> None:
        super().__init__(now, waiting)
        self._newest: dict[str, tuple[ReplaceablePublication, int, int]] = {}

    def fold(self, topic: str, message: ReplaceablePublication, variant: int) -> None:
        dropped = 0
        if topic in self._newest:
            older, _, dropped = self._newest[topic]
            message, dropped = message.over(older), dropped + 1
        self._newest[topic] = message, variant, dropped

    def forget(self, topics: Collection[str]) -> None:
        for topic in topics:
            self._newest.pop(topic, None)

    def line_up(self) -> None:
        """What waits now goes out before anything newer, and is not replaced by it."""
        while newest := self._pop_newest():
            self.put(newest)

    def take(self) -> bytes:
        return super().take() or self._pop_newest()

    def _pop_newest(self) -> bytes:
        if not self._newest:
            return b""
        message, variant, dropped = self._newest.pop(next(iter(self._newest)))
        notice = frame(message.notice(dropped)) if dropped else b""
        return notice + frame(message.payload(variant))


class Replay(Backlog):
    """Goes out as the client reads, before what is published meanwhile. Only the latter is bounded, but the
    client has to keep reading."""

    def __init__(
        self, now: float, waiting: int, older: Backlog | None, frames: Iterator[bytes], stream: str = ""
    ) -> None:
        super().__init__(now, waiting)
        self._older, self._replayed, self._stream = older, frames, stream

    def is_of(self, stream: str) -> bool:
        """Whether what this stream replays may not have been read yet."""
        older = self._older
        return self._stream == stream or (isinstance(older, Replay) and older.is_of(stream))

    def take(self) -> bytes:
        if self._older is not None:
            if portion := self._older.take():
                return portion
            self._older = None
        taken: list[bytes] = []
        size = 0
        while size < PORTION_BYTES and (frames := next(self._replayed, b"")):
            taken.append(frames)
            size += len(frames)
        return b"".join(taken) or super().take()


class LatestReplay(Replay, LatestBacklog):
    """The same for a client that, when slow, wants only the newest of what is published meanwhile."""

    def forget(self, topics: Collection[str]) -> None:
        super().forget(topics)
        if isinstance(self._older, LatestBacklog):
            self._older.forget(topics)


class AnySlowReaders(Protocol):
    @property
    def conflating(self) -> Container[Subscriber]: ...
    def hold(self, subscriber: Subscriber, /) -> None: ...
    def release(self, subscriber: Subscriber, /) -> None: ...
    def give_up(self, subscriber: Subscriber, /) -> None: ...


class AnyHub(Protocol):
    """What a subscriber asks of its hub, whose module imports this one."""

    @property
    def loop(self) -> AbstractEventLoop: ...
    @property
    def slow(self) -> AnySlowReaders: ...
    def flush(self) -> None: ...
    def hand(self, subscriber: Subscriber, write: Write, frames: bytes, /) -> None: ...
    def leave(self, subscriber: Subscriber, /) -> None: ...


class Audience:
    """The groups that get one topic in one variant."""

    __slots__ = ("encoded", "groups", "topic", "variant", "wrote_at")

    def __init__(self, topic: str, variant: int) -> None:
        self.topic, self.variant = topic, variant
        self.groups: dict[Group, None] = {}
        self.wrote_at = 0.0
        """When its frame was last the only one that was due."""
        self.renew()

    def renew(self) -> None:
        self.encoded: EncodedGroup | None = None
        """All of its groups joined, if that was made since the last change."""

    def encode(self) -> EncodedGroup:
        self.encoded = encoded = EncodedGroup.joined(
            [group.encoded or group.encode() for group in self.groups]
        )
        return encoded


class Group:
    """Subscribers with exactly the same subscriptions. Their frames are collected and joined once."""

    __slots__ = ("audiences", "descriptor", "due", "encoded", "more", "subscribers", "wrote_at")

    def __init__(self, audiences: frozenset[Audience]) -> None:
        self.audiences = audiences
        self.subscribers: dict[Subscriber, None] = {}
        self.wrote_at = 0.0
        # With thousands of groups most of the time is spent waiting for memory. A list for a single frame, or
        # a look at the subscriber for a single descriptor, would each be one more place in it.
        self.due = b""
        """The first frame that is not written yet, and most often the only one."""
        self.more: list[bytes] | None = None
        self.renew()

    def renew(self) -> None:
        """Called when a client comes or goes, or takes frames in another way."""
        self.encoded: EncodedGroup | None = None
        self.descriptor = NO_DESCRIPTOR
        """The destination of its frames, if that is one socket and known since the last change."""
        for audience in self.audiences:
            audience.renew()

    @property
    def topics(self) -> frozenset[str]:
        return self.topics_in(0)

    def topics_in(self, variant: int) -> frozenset[str]:
        """Those whose frames it gets in this variant; with 0, all."""
        return frozenset(
            audience.topic for audience in self.audiences if not variant or audience.variant & variant
        )

    def encode(self) -> EncodedGroup:
        self.encoded = encoded = EncodedGroup.of(self.subscribers)
        if len(encoded.descriptors) == len(self.subscribers) == 1:
            self.descriptor = encoded.descriptors[0]
        return encoded

    def add(self, subscriber: Subscriber) -> None:
        self.subscribers[subscriber] = None
        self.renew()

    def remove(self, subscriber: Subscriber) -> None:
        del self.subscribers[subscriber]
        self.renew()


Write = Callable[[bytes], object]


class Subscriber:
    __slots__ = (
        "_said_at",
        "_waiters",
        "backlog",
        "connection",
        "descriptor",
        "group",
        "hub",
        "is_open",
        "is_paused",
        "on_slow",
        "wants_latest",
        "write",
    )

    def __init__(
        self, hub: AnyHub, connection: WebSocketConnection, group: Group, on_slow: Callable[[], None]
    ) -> None:
        self.hub, self.connection, self.group, self.on_slow = hub, connection, group, on_slow
        self.attach()
        self.backlog: Backlog | None = None
        self.is_open, self.is_paused = True, False
        self.wants_latest = False
        """Whether only the newest message of each topic should wait when it reads too slowly."""
        self._said_at = 0.0
        self._waiters: list[Future[None]] = []

    @property
    def topics(self) -> frozenset[str]:
        return self.group.topics

    @property
    def wrote_at(self) -> float:
        """The loop's time of the last frames that it was due."""
        to_many = (audience.wrote_at for audience in self.group.audiences)
        return max(self._said_at, self.group.wrote_at, *to_many)

    def has_been_silent_since(self, at: float) -> bool:
        """Asked of thousands each second, so audiences are only looked at if nothing else answers it."""
        return max(self._said_at, self.group.wrote_at) <= at and self.wrote_at <= at

    @property
    def is_conflating(self) -> bool:
        return self in self.hub.slow.conflating

    def send(self, frames: bytes) -> None:
        """To this one alone, between what was published before and what comes later."""
        self.hub.flush()
        self._said_at = self.hub.loop.time()
        self.hub.hand(self, self.write, frames)

    async def drained(self) -> None:
        """Wait until the kernel has everything for this client, or the client is gone."""
        if self.backlog is not None:
            waiter = self.hub.loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def join_group(self, group: Group) -> None:
        self._said_at, self.group = self.wrote_at, group
        group.add(self)

    def attach(self) -> None:
        """Frames go to the connection, or straight to the kernel while nothing waits in the connection. The
        group has to be renewed afterwards."""
        self.write: Write = self.connection.write
        self.descriptor = self.connection.descriptor

    def redirect(self, write: Write) -> None:
        """Frames go there from now on."""
        self.write, self.descriptor = write, NO_DESCRIPTOR
        self.group.renew()

    def leave(self) -> None:
        self.is_open = False
        # The callbacks may hold this subscriber in turn.
        self.connection.watcher, self.on_slow = None, ignore_end
        self.redirect(ignore_frames)

    def paused(self) -> None:
        self.is_paused = True
        if self.is_open and self.backlog is None:
            self.hub.slow.hold(self)

    def resumed(self) -> None:
        self.is_paused = False
        if self.backlog is not None:
            # Not from inside the transport, which may be in the middle of a write.
            self.hub.loop.call_soon(self._drain)

    def ended(self) -> None:
        self.hub.leave(self)

    def put(self, frames: bytes) -> None:
        """What `write` is while the client reads too slowly."""
        if self.backlog is None:
            return
        self.backlog.put(frames)
        if self.backlog.is_too_long(self.connection.waiting):
            self.hub.slow.give_up(self)

    def wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _drain(self) -> None:
        while self.backlog is not None and not self.is_paused:
            portion = self.backlog.take()
            if not portion:
                self.hub.slow.release(self)
                return
            self.backlog.moved(self.hub.loop.time(), self.connection.waiting)
            self.hub.hand(self, self.connection.write, portion)


class EncodedGroup:
    """Subscribers beside the places to which their frames go. It is never changed, so it can be gone through
    while subscribers come and go."""

    __slots__ = ("descriptors", "direct", "others", "size")

    def __init__(self, direct: list[Subscriber], descriptors: array[int], others: list[Subscriber]) -> None:
        self.direct, self.descriptors = direct, descriptors
        self.others = others
        """Their frames do not go straight to the kernel."""
        self.size = len(direct) + len(others)

    @classmethod
    def of(cls, subscribers: Collection[Subscriber]) -> EncodedGroup:
        direct = [subscriber for subscriber in subscribers if subscriber.descriptor != NO_DESCRIPTOR]
        others = []
        if len(direct) < len(subscribers):
            others = [
                subscriber
                for subscriber in subscribers
                if subscriber.descriptor == NO_DESCRIPTOR and not subscriber.is_conflating
            ]
        return cls(direct, array("i", [subscriber.descriptor for subscriber in direct]), others)

    @classmethod
    def joined(cls, groups: Sequence[EncodedGroup]) -> EncodedGroup:
        if len(groups) == 1:
            return groups[0]
        descriptors = array("i")
        for group in groups:
            descriptors += group.descriptors
        direct = [subscriber for group in groups for subscriber in group.direct]
        return cls(direct, descriptors, [subscriber for group in groups for subscriber in group.others])


class Memberships:
    def __init__(self) -> None:
        self.topics: dict[str, dict[int, Audience]] = {}
        """The audiences of each, by variant."""
        self.groups: dict[frozenset[Audience], Group] = {}

    def group(self, topics: Iterable[tuple[str, int]] = ()) -> Group:
        """Of those who get these topics, each in its variant."""
        key = frozenset(self._audience(topic, variant) for topic, variant in topics)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key)
            for audience in key:
                audience.groups[group] = None
        return group

    def tidy(self, group: Group) -> None:
        """Forget an empty group, and the audiences that it alone was in."""
        if group.subscribers:
            return
        del self.groups[group.audiences]
        for audience in group.audiences:
            del audience.groups[group]
            if not audience.groups:
                variants = self.topics[audience.topic]
                del variants[audience.variant]
                if not variants:
                    del self.topics[audience.topic]

    def _audience(self, topic: str, variant: int) -> Audience:
        variants = self.topics.setdefault(topic, {})
        if variant not in variants:
            variants[variant] = Audience(topic, variant)
        return variants[variant]


def ignore_end() -> None:
    """Stands in for a callback that is not needed."""


def ignore_frames(frames: bytes) -> None:
    """The `write` of a connection that is over."""
