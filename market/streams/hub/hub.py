"""From topics to the connections of this process. The hub knows nothing of prices and nothing of sockets. Who
reads too slowly is ended.

What is published in one turn of the loop leaves in one write per connection. Nothing here waits, and no
recipient has a task or an encoding of its own."""

import asyncio
import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from types import MappingProxyType

from core.clock import now_ms
from core.deadlines import patient
from serving.websocket.connection import WebSocketConnection, frame

from .delivery import FlushPlan, PendingFrame, UnsentTail, WriteLatency, send_to_all, write_each
from .subscribers import (
    STUCK_AFTER_S,
    AnyHub,
    Audience,
    Backlog,
    LatestBacklog,
    LatestReplay,
    Memberships,
    Publication,
    Replay,
    Subscriber,
    Write,
    can_replace,
    ignore_end,
)

# Clients that read too slowly. Their frames wait, up to a bound, until they catch up or are given up.
logger = logging.getLogger(__name__)
SWEEP_S = 0.5
STUCK_S = patient(STUCK_AFTER_S)


class SlowReaders:
    def __init__(self, hub: AnyHub) -> None:
        self.hub = hub
        self.subscribers: dict[Subscriber, None] = {}
        self.conflating: dict[Subscriber, LatestBacklog] = {}
        self.given_up = 0
        self._is_sweeping = False

    def hold(self, subscriber: Subscriber) -> None:
        """Called from inside a write. From the next one on, frames wait."""
        kind = LatestBacklog if subscriber.wants_latest else Backlog
        backlog = subscriber.backlog = kind(self.hub.loop.time(), subscriber.connection.waiting)
        subscriber.redirect(subscriber.put)
        self.subscribers[subscriber] = None
        if isinstance(backlog, LatestBacklog):
            self.hub.flush()
            if subscriber.is_open:
                self.conflating[subscriber] = backlog
                subscriber.group.renew()
        if not self._is_sweeping:
            self._is_sweeping = True
            self.hub.loop.call_later(SWEEP_S, self._sweep)

    def release(self, subscriber: Subscriber) -> None:
        """Nothing waits any more."""
        if subscriber.is_conflating:
            # It has already had what the others of its group are still due.
            self.hub.flush()
        subscriber.attach()
        self.drop(subscriber)

    def drop(self, subscriber: Subscriber) -> None:
        self.subscribers.pop(subscriber, None)
        self.conflating.pop(subscriber, None)
        subscriber.backlog = None
        subscriber.group.renew()
        subscriber.wake()

    def give_up(self, subscriber: Subscriber) -> None:
        if subscriber.is_open:
            self.given_up += 1
            logger.info("A client reads too slowly and is given up")
            on_slow = subscriber.on_slow
            self.hub.leave(subscriber)
            self.hub.loop.call_soon(on_slow)

    def _sweep(self) -> None:
        now = self.hub.loop.time()
        for subscriber in tuple(self.subscribers):
            waiting = subscriber.connection.waiting
            if subscriber.backlog is not None and subscriber.backlog.is_stuck(now, waiting, STUCK_S):
                self.give_up(subscriber)
        self._is_sweeping = bool(self.subscribers)
        if self._is_sweeping:
            self.hub.loop.call_later(SWEEP_S, self._sweep)


# Up to this many are written with the reply and need no queue.
FEW = 64


def replay(slow: SlowReaders, subscriber: Subscriber, frames: Iterator[bytes], stream: str = "") -> None:
    """Send these before anything that is published from now on."""
    first = list(islice(frames, FEW))
    subscriber.send(b"".join(first))
    if len(first) < FEW or not subscriber.is_open:
        return
    if isinstance(subscriber.backlog, Replay) and subscriber.backlog.is_of(stream):
        # A client that asks again before it has read what it asked for would fill the memory.
        slow.give_up(subscriber)
        return
    if subscriber.backlog is None:
        slow.hold(subscriber)
    older, make = subscriber.backlog, LatestReplay if subscriber.is_conflating else Replay
    now, waiting = slow.hub.loop.time(), subscriber.connection.waiting
    backlog = subscriber.backlog = make(now, waiting, older, frames, stream)
    if isinstance(backlog, LatestBacklog):
        slow.conflating[subscriber] = backlog
    if not subscriber.is_paused:
        subscriber.resumed()


NO_AUDIENCES: Mapping[int, Audience] = MappingProxyType({})


# How many are notified in one turn of the loop, which takes some milliseconds.
AT_ONCE = 500
MakeNotice = Callable[[frozenset[str]], bytes | None]
"""Makes the notice for clients with these topics; None if it does not concern them."""


class Hub:
    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._own_loop = loop
        self.clear()

    def clear(self) -> None:
        """Forget everybody, as when the loop they lived on has ended."""
        self._members = Memberships()
        self._pending: list[PendingFrame] = []
        self._is_flushing = False
        self._notices = deque[tuple[Iterator[tuple[Subscriber, bytes]], Callable[[], None]]]()
        """They go out one after the other, so that all clients get them in the same order."""
        self.slow = SlowReaders(self)
        self.frames = 0
        """Handed to connections since the start."""
        self.broken = 0
        self.closed: Counter[int] = Counter()
        """By code."""
        self.latency = WriteLatency()
        """From the engine's acceptance of the oldest tick of a turn to the writes of that turn."""
        self.ages = WriteLatency()
        """From that tick's own time to the same writes."""
        self._since_ms = self._dated_ms = 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._own_loop or asyncio.get_running_loop()

    @property
    def members(self) -> int:
        return sum(len(group.subscribers) for group in self._members.groups.values())

    @property
    def topics(self) -> frozenset[str]:
        """Those with a subscriber."""
        return frozenset(self._members.topics)

    def topics_of(self, subscriber: Subscriber) -> frozenset[str]:
        return subscriber.topics

    def has(self, topic: str) -> bool:
        """Whether it has a subscriber."""
        return topic in self._members.topics

    def join(self, connection: WebSocketConnection, on_slow: Callable[[], None]) -> Subscriber:
        """`on_slow` is called once, after the subscriber was given up; `end` can still be called then."""
        subscriber = Subscriber(self, connection, self._members.group(), on_slow)
        subscriber.join_group(subscriber.group)
        connection.watcher = subscriber
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        if subscriber.is_open:
            subscriber.leave()
            if subscriber.backlog is not None:
                self.slow.drop(subscriber)
            subscriber.group.remove(subscriber)
            self._members.tidy(subscriber.group)

    def end(self, subscriber: Subscriber, code: int, reason: str = "", last: bytes = b"") -> None:
        """Close after everything that it was due; a slow reader only gets `last`."""
        self.flush()
        self.leave(subscriber)
        self.closed[code] += 1
        subscriber.connection.close(code, reason, last)

    def subscribe(
        self, subscriber: Subscriber, topics: Iterable[str], variant: int = 0, lead: str = ""
    ) -> None:
        """To these topics alone of those that begin with `lead`, from the next message on."""
        self.flush()
        if not subscriber.is_open:
            return
        before = subscriber.group
        kept = [(each.topic, each.variant) for each in before.audiences if not each.topic.startswith(lead)]
        group = self._members.group(chain(kept, ((topic, variant) for topic in topics)))
        if subscriber in self.slow.conflating:
            self.slow.conflating[subscriber].forget(before.topics - group.topics)
        if group is not before:
            before.remove(subscriber)
            subscriber.join_group(group)
            self._members.tidy(before)

    def written(self, text: bytes) -> bytes:
        return frame(text)

    def publish(self, message: Publication, *topics: str, since_ms: int = 0, dated_ms: int = 0) -> None:
        """Encoded once for each variant with a subscriber, and not at all without."""
        built: dict[int, bytes] = {}
        for topic in topics:
            for variant, audience in self._members.topics.get(topic, NO_AUDIENCES).items():
                data = built.get(variant)
                if data is None:
                    data = built[variant] = frame(message.payload(variant) if variant else message.frame)
                self._pending.append((audience, data))
                if self.slow.conflating:
                    self._fold(audience, message, data)
        if self._pending:
            if not self._since_ms:
                self._since_ms, self._dated_ms = since_ms, dated_ms
            if not self._is_flushing:
                self._is_flushing = True
                self.loop.call_soon(self.flush)

    def notify(self, make: MakeNotice, on_end: Callable[[], None] = ignore_end, variant: int = 0) -> None:
        """Send what `make` says of their topics to all clients, or to those with this `variant`, after
        everything that was published before. `on_end` is called when all have been notified."""
        self.flush()
        # The recipients are fixed now: a client that subscribes later learns it from the reply.
        groups = self._members.groups.values()
        due = [(list(group.subscribers), named) for group in groups if (named := group.topics_in(variant))]
        self._notices.append((notices(due, make), on_end))
        if len(self._notices) == 1:
            self._notify_next()

    def _notify_next(self) -> None:
        """A crowd is notified in parts, so that it does not hold up others."""
        while self._notices:
            each, on_end = self._notices[0]
            some = list(islice(each, AT_ONCE))
            for subscriber, data in some:
                # What waits was published before the notice, and must not be replaced by anything newer.
                if isinstance(subscriber.backlog, LatestBacklog):
                    subscriber.backlog.line_up()
                subscriber.send(data)
            if len(some) == AT_ONCE:
                self.loop.call_soon(self._notify_next)
                return
            self._notices.popleft()
            on_end()

    def flush(self) -> None:
        """Write everything that is due: at the end of a turn, and before anything that is for one client
        alone."""
        self._is_flushing = False
        if self._pending:
            pending, self._pending = self._pending, []
            since_ms, dated_ms, self._since_ms = self._since_ms, self._dated_ms, 0
            self._deliver(pending)
            if since_ms:
                at_ms = now_ms()
                self.latency.add(since_ms, at_ms)
                if dated_ms:
                    self.ages.add(dated_ms, at_ms)

    def hand(self, subscriber: Subscriber, write: Write, frames: bytes) -> None:
        try:
            write(frames)
        except Exception:  # noqa: BLE001 - whatever is wrong with one connection ends that one alone
            self._break(subscriber)

    def _deliver(self, pending: list[PendingFrame]) -> None:
        """The recipients are fixed before the first write, because a write may call back into the hub."""
        now = self.loop.time()
        if len(pending) == 1:
            ((audience, data),) = pending
            encoded, audience.wrote_at = audience.encoded or audience.encode(), now
            self.frames += encoded.size
            if unsent := send_to_all(encoded, data):
                self._finish(unsent)
            if encoded.others:
                self._write(encoded.others, repeat(data))
            return
        plan = FlushPlan.of(pending, now)
        self.frames += plan.number
        for encoded, data in plan.shared:
            self._finish(send_to_all(encoded, data))
        self._finish(plan.send_alone())
        if plan.others:
            self._write(plan.others, plan.their_frames)

    def _finish(self, unsent: list[UnsentTail]) -> None:
        for subscriber, tail in unsent:
            self.hand(subscriber, subscriber.write, tail)

    def _write(self, subscribers: list[Subscriber], frames: Iterable[bytes]) -> None:
        writes = [subscriber.write for subscriber in subscribers]
        write_each(writes, frames, lambda index: self._break(subscribers[index]))

    def _fold(self, audience: Audience, message: Publication, data: bytes) -> None:
        """Of a hub that streams share, not all messages can be replaced: the others wait in their order."""
        for subscriber, backlog in tuple(self.slow.conflating.items()):
            if audience not in subscriber.group.audiences:
                continue
            if can_replace(message):
                backlog.fold(audience.topic, message, audience.variant)
            else:
                subscriber.put(data)

    def _break(self, subscriber: Subscriber) -> None:
        self.broken += 1
        logger.warning("A connection broke at a write", exc_info=True)
        self.leave(subscriber)
        with contextlib.suppress(Exception):
            subscriber.connection.abort()


def notices(
    due: list[tuple[list[Subscriber], frozenset[str]]], make: MakeNotice
) -> Iterator[tuple[Subscriber, bytes]]:
    """Encoded once for each set of topics."""
    for subscribers, topics in due:
        text = make(topics)
        if text is not None:
            data = frame(text)
            yield from ((subscriber, data) for subscriber in subscribers if subscriber.is_open)
