"""How the demo's test instrument misbehaves for clients that asked for it, on topics of their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from instruments.facts import TEST_SYMBOL
from market.streams.protocol.messages import CHAOS, Chaos, RequestedFeature

from .wire import OutgoingFrame

EVERY, BURST = 10, 20
CYCLE_MS, STALE_AFTER_MS = 30_000, 15_000


def copies(faults: Collection[Chaos], seq: int, sent_ms: int) -> int:
    """How often a frame is sent. No frame is both left out and sent twice."""
    if "chaos:gap" in faults and seq % EVERY == 0:
        return 0
    if "chaos:stale" in faults and sent_ms % CYCLE_MS >= STALE_AFTER_MS:
        return 0
    return 2 if "chaos:duplicate" in faults and seq % EVERY == EVERY // 2 else 1


class TopicFault:
    """The faults of one topic."""

    def __init__(self, faults: Collection[Chaos]) -> None:
        self._faults = faults
        self._least = BURST if "chaos:burst" in faults else 1
        self._held: list[OutgoingFrame] = []

    def take(self, outgoing: OutgoingFrame) -> list[OutgoingFrame]:
        """The frames that are sent now."""
        self._held += [outgoing] * copies(self._faults, outgoing.seq, outgoing.sent_ms)
        return self.release() if len(self._held) >= self._least else []

    def release(self) -> list[OutgoingFrame]:
        held, self._held = self._held, []
        return held


class Publisher(Protocol):
    def has(self, topic: str, /) -> bool: ...
    def publish(self, message: OutgoingFrame, /, *topics: str) -> None: ...


class TopicFaults:
    """The requested faults."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._topics: dict[str, TopicFault] = {}

    def clear(self) -> None:
        self._topics.clear()

    def topics(self, symbols: Collection[str], features: Collection[RequestedFeature]) -> set[str]:
        """The topics of a client that follows these symbols."""
        faults = [fault for fault in CHAOS if fault in features]
        if not faults or TEST_SYMBOL not in symbols:
            return set(symbols)
        # A newcomer must not get what was held back before it came.
        self.release()
        topic = f"{TEST_SYMBOL}/{','.join(faults)}"
        self._topics.setdefault(topic, TopicFault(faults))
        return {*symbols, topic} - {TEST_SYMBOL}

    def send(self, outgoing: OutgoingFrame) -> None:
        for topic, fault in tuple(self._topics.items()):
            if self._publisher.has(topic):
                self._publish(topic, fault.take(outgoing))
            else:
                del self._topics[topic]

    def release(self) -> None:
        for topic, fault in self._topics.items():
            self._publish(topic, fault.release())

    def _publish(self, topic: str, frames: list[OutgoingFrame]) -> None:
        for outgoing in frames:
            self._publisher.publish(outgoing, topic)
