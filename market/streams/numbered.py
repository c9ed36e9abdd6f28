"""The base of prices and order flow: what follows a subscribe. Which of the two, a consumer says."""

from __future__ import annotations

from itertools import chain
from typing import ClassVar

from market.services import is_heard, now_ms

from . import protocol
from .consumer import StreamConsumer, is_known
from .framing import frame
from .messages import ALL, Subscribe, Unsubscribe
from .outgoing import variant_of
from .replay import replay
from .resume import Spent
from .stream import NumberedStream


class NumberedConsumer(StreamConsumer):
    stream: ClassVar[NumberedStream]

    def __init__(self) -> None:
        super().__init__()
        self._replayed = Spent()

    def _subscribe(self, message: Subscribe) -> None:
        """Without an await: no frame comes between what is replayed and what is heard from now on."""
        if self._is_over or self._seat is None:
            return
        hub, seat, subscribed = self.stream.hub, self._seat, self._subscriptions
        subscribed.drop({symbol for symbol in subscribed.symbols if symbol != ALL and not is_known(symbol)})
        change = subscribed.subscribe(message, is_known)
        now = now_ms()
        opened = self.stream.open(message, subscribed, change, now, self._replayed)
        seat.wants_latest = "latest" in subscribed.features and self.stream.kind.can_conflate
        topics = self._topics()
        hub.unsubscribe(seat, seat.topics - topics)
        hub.subscribe(seat, topics, variant_of(subscribed.features))
        reply = protocol.subscribed(
            self.stream.kind.name, subscribed.symbols, change.rejected, now, message.id, opened.goes_on
        )
        replay(hub, seat, chain([frame(reply)], opened.frames))
        if change.joined and not is_heard():
            self._say(protocol.notice("stale", change.joined, now))
        self._settle_in()

    def _unsubscribe(self, message: Unsubscribe) -> None:
        self._subscriptions.unsubscribe(message)
        if self._seat is not None:
            self.stream.hub.unsubscribe(self._seat, self._seat.topics - self._topics())
        self._say(protocol.unsubscribed(self._subscriptions.symbols, now_ms(), message.id))

    def drop(self, gone: frozenset[str]) -> None:
        if self._seat is not None and not gone.isdisjoint(self._subscriptions.symbols):
            self._subscriptions.drop(gone)
            self.stream.hub.unsubscribe(self._seat, self._seat.topics - self._topics())

    def _topics(self) -> set[str]:
        return self.stream.faults.topics(self._subscriptions.symbols, self._subscriptions.features)
