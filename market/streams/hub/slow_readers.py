"""Clients that read too slowly. Their frames wait, up to a bound, until they catch up or are given up."""

import logging
from collections.abc import Iterator
from itertools import islice

from core.deadlines import patient

from .backlog import STUCK_AFTER_S, Backlog, LatestBacklog, LatestReplay, Replay
from .subscribers import AnyHub, Subscriber

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


def replay(slow: SlowReaders, subscriber: Subscriber, frames: Iterator[bytes]) -> None:
    """Send these before anything that is published from now on."""
    first = list(islice(frames, FEW))
    subscriber.send(b"".join(first))
    if len(first) < FEW or not subscriber.is_open:
        return
    if isinstance(subscriber.backlog, Replay):
        # A client that asks again before it has read what it asked for would fill the memory.
        slow.give_up(subscriber)
        return
    if subscriber.backlog is None:
        slow.hold(subscriber)
    older, make = subscriber.backlog, LatestReplay if subscriber.is_conflating else Replay
    backlog = subscriber.backlog = make(slow.hub.loop.time(), subscriber.connection.waiting, older, frames)
    if isinstance(backlog, LatestBacklog):
        slow.conflating[subscriber] = backlog
    if not subscriber.is_paused:
        subscriber.resumed()
