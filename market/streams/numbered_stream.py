"""A stream of prices, order flow or candles: who listens to it, and what it sent lately."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import chain

from msgspec import UNSET

from core import clock
from core.plain_json import encode
from instruments.facts import TEST_SYMBOL
from market import runtime as market
from market.engine.bus.journal import KEEP_MS
from market.streams.hub.hub import Hub, replay
from market.streams.protocol import replies
from market.streams.protocol.messages import ALL, StreamKind, Subscribe
from market.streams.protocol.replies import Gap, Notice, Subscribed
from market.streams.protocol.subscriptions import SubscriptionChange, Subscriptions
from serving.websocket.connection import frame

from .chaos import TopicFaults
from .consumer import Stream, StreamConsumer
from .resume import LastSent, NumberedFrame, RecentFrames, ReplayAllowance
from .wire import SEQ, OutgoingFrame, extended


class NumberedStream(Stream):
    """Its frames have numbers from their source, by which a client resumes."""

    def __init__(self, kind: StreamKind, hub: Hub | None = None, keep_ms: int = KEEP_MS) -> None:
        super().__init__(kind, hub)
        self._changes = 0
        """Those of which not all clients have been told yet: a crowd is told part by part."""
        self._held: list[partial[None]] = []
        """What is sent when all have been told, so that no later frame overtakes the notice of a change."""
        self.recent = RecentFrames(keep_ms, from_first=kind.has_timeframes)
        self.faults = TopicFaults(self.hub)
        self._besides = (ALL,) if kind.takes_all else ()

    def clear(self) -> None:
        super().clear()
        self.faults.clear()
        self.recent.restart("")
        self._held, self._changes = [], 0

    @property
    def is_changing(self) -> bool:
        """What is sent now is held."""
        return self._changes > 0

    @property
    def followed(self) -> set[str]:
        """The symbols, or "*", that somebody is subscribed to."""
        return self.symbols_of(self.hub.topics)

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        """Clients that make the demo's test instrument misbehave get it on topics of their own."""
        return self.faults.topics(subscribed.symbols, subscribed.features)

    def keys_of(self, topics: frozenset[str]) -> Collection[str]:
        """By what the frames on these topics are numbered."""
        return self.symbols_of(topics)

    def begin(self, epoch: str, known: Iterable[LastSent]) -> None:
        """Frames may have gone by unseen, or the numbering is another."""
        self.faults.release()
        self.recent.restart(epoch)
        for last in known:
            self.recent.know(last)
        # Held frames have the old numbers: the gap tells clients that they are missing. New series are kept.
        self._held = [held for held in self._held if held.func == self.begin_series]
        self.hub.notify(self._gap, self._hold(), SEQ)

    def send(
        self,
        symbol: str,
        outgoing: OutgoingFrame,
        *,
        is_offered: bool = True,
        is_tick: bool = True,
        since_ms: int = 0,
        dated_ms: int = 0,
    ) -> None:
        """A frame of an instrument that is not offered is numbered, but sent to nobody."""
        if self._changes:
            self._held.append(
                partial(
                    self.send,
                    symbol,
                    outgoing,
                    is_offered=is_offered,
                    is_tick=is_tick,
                    since_ms=since_ms,
                    dated_ms=dated_ms,
                )
            )
            return
        self.recent.add(symbol, outgoing.seq, outgoing.frame, outgoing.sent_ms, is_tick=is_tick)
        if is_offered:
            self.hub.publish(outgoing, symbol, *self._besides, since_ms=since_ms, dated_ms=dated_ms)
            if symbol == TEST_SYMBOL:
                self.faults.send(outgoing)

    def _hold(self) -> Callable[[], None]:
        """What is sent until then waits."""
        self._changes += 1
        return self._end_change

    def _end_change(self) -> None:
        self._changes -= 1
        if not self._changes:
            held, self._held = self._held, []
            for send in held:
                send()

    def _gap(self, topics: frozenset[str]) -> bytes | None:
        symbols, recent = self.symbols_of(topics), self.recent
        positions = recent.positions(self.keys_of(topics))
        return encode(
            Gap(symbols=sorted(symbols), epoch=recent.epoch, positions=positions, time=clock.now_ms())
        )

    def begin_series(self, symbol: str, last_tick: NumberedFrame | None, now_ms: int) -> None:
        """From now on its prices are of another kind, as `last_tick` is."""
        if self._changes:
            self._held.append(partial(self.begin_series, symbol, last_tick, now_ms))
            return
        self.end_series(symbol, last_tick)
        concerned = {symbol, ALL}
        self.notify("new_series", lambda named: [symbol] if concerned & named else [], now_ms, self._hold())

    def end_series(self, symbol: str, last_tick: NumberedFrame | None) -> None:
        self.recent.begin_series(symbol, last_tick)

    def notify_liveness(self, is_heard: bool) -> None:
        """While no engine is heard nothing comes, which would look like a quiet market."""
        self.notify("live" if is_heard else "stale", lambda named: named, clock.now_ms())

    async def subscribe(self, client: StreamConsumer, message: Subscribe) -> None:
        # Nothing is awaited here, so that no frame comes before the reply and none is missed after it.
        subscriber, wanted, now = client.subscriber, client.subscriptions, clock.now_ms()
        change = client.add(message)
        market.follow(None if wanted.has_all else wanted.symbols)
        reply, missed = self.open(message, wanted, change, now, client.replayed)
        subscriber.wants_latest = "latest" in wanted.features and self.kind.can_conflate
        client.listen()
        replay(self.hub.slow, subscriber, chain([frame(encode(reply))], missed))
        if change.joined and not market.is_heard():
            client.say(Notice(code="stale", symbols=change.joined, time=now))

    def open(
        self,
        message: Subscribe,
        subscribed: Subscriptions,
        change: SubscriptionChange,
        now_ms: int,
        allowance: ReplayAllowance,
    ) -> tuple[Subscribed, Iterator[bytes]]:
        """The reply to a subscribe, and the frames after it. Nothing may be awaited between this and the
        hub's subscribe."""
        resume = None if message.resume is UNSET else message.resume
        for symbol in change.begun:
            # An instrument that is newer than the numbering has never been sent.
            if symbol != ALL and not self.recent.knows(symbol):
                self.recent.know(LastSent(symbol, 0))
        opening = self.recent.open(subscribed, change, resume, now_ms, allowance)
        is_numbered = "seq" in subscribed.features
        reply = replies.subscribed(
            self.kind.name,
            subscribed.symbols,
            change.rejected,
            now_ms,
            message.id,
            timeframes=[*subscribed.timeframes] or UNSET,
            epoch=self.recent.epoch if is_numbered else UNSET,
            positions=opening.positions if is_numbered else UNSET,
            unrecovered=UNSET if resume is None else opening.unrecovered,
        )
        variant = self.variant_of(subscribed)
        # Each is made when it is due.
        return reply, (frame(extended(data, seq, now_ms, variant)) for seq, data in opening.frames)
