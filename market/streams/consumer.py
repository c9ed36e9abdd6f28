"""A stream, and the Channels consumer of its sockets and of those that carry all streams: who may subscribe,
what a client is sent, and how it ends."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from itertools import chain
from typing import Any, ClassVar

from django.conf import settings
from msgspec import UNSET

from accounts.key_text import shown_prefix
from accounts.keys import Caller
from accounts.open_streams import MOST_SYMBOLS, EndCode, Slot, SlotRefusal, StreamDetails, open_streams
from accounts.usage import usage_buffer
from core.clock import now_ms, passed_ms
from core.database import TRANSIENT
from core.fault_log import RepeatedWarning
from core.logs import log_refusal
from core.plain_json import encode
from instruments.catalogue import OfferChange, catalogue
from market.streams.hub.hub import Hub, MakeNotice
from market.streams.hub.share import Share
from market.streams.hub.subscribers import Publication, Subscriber, ignore_end
from market.streams.protocol.messages import (
    ALL,
    CHAOS,
    MARKET,
    ONE_SOCKET,
    RESTARTING,
    TOO_MANY_INVALID,
    AnyMessage,
    Code,
    Control,
    List,
    Ping,
    RequestedFeature,
    StreamKind,
    StreamRefused,
    Subscribe,
    Unsubscribe,
    invalid,
    too_many_streams,
)
from market.streams.protocol.reading import MAX_BYTES, Inbound, named_kind, read, unknown_features
from market.streams.protocol.subscriptions import (
    Heartbeat,
    Listed,
    Notice,
    NoticeCode,
    Pong,
    Subscribed,
    SubscriptionChange,
    Subscriptions,
    Unsubscribed,
)
from serving.websocket.connection import WebSocketConnection, frame
from serving.websocket.consumer import Consumer

from .authenticated import Identity, authenticated_sockets
from .resume import ReplayAllowance
from .wire import SENT, variant_of

logger = logging.getLogger(__name__)


one_socket = Hub()
"""Of the sockets on `/ws`, which all streams share."""


class Stream(ABC):
    """Of one kind in this process: who listens to it, on its own path and on `/ws`."""

    def __init__(self, kind: StreamKind, hub: Hub | None = None) -> None:
        self.kind = kind
        self.hub = hub or Hub()
        """Of the sockets on its own path."""
        self._hubs: tuple[Hub | Share, ...] = self.hub, Share(one_socket, kind.name)

    @abstractmethod
    async def subscribe(self, client: Following, message: Subscribe) -> None:
        """Reply, then send what was asked for."""

    @property
    def topics(self) -> frozenset[str]:
        """Those with a subscriber."""
        return frozenset(chain.from_iterable(hub.topics for hub in self._hubs))

    def has(self, topic: str) -> bool:
        return any(hub.has(topic) for hub in self._hubs)

    def hub_of(self, subscriber: Subscriber) -> Hub | Share:
        return self._hubs[subscriber.hub is not self.hub]

    def publish(self, message: Publication, *topics: str, since_ms: int = 0, dated_ms: int = 0) -> None:
        for hub in self._hubs:
            hub.publish(message, *topics, since_ms=since_ms, dated_ms=dated_ms)

    def topics_of(self, subscribed: Subscriptions) -> set[str]:
        return set(subscribed.symbols)

    def variant_of(self, subscribed: Subscriptions) -> int:
        """Signals have no numbers, because positions in the outbox have holes where nothing was lost."""
        variant = variant_of(subscribed.features)
        return variant if self.kind.is_numbered else variant & SENT

    def symbols_of(self, topics: frozenset[str]) -> set[str]:
        """The symbols, or "*", that clients with these topics named."""
        return {topic.partition("/")[0] for topic in topics}

    def tell_offer(self, change: OfferChange, symbols: Collection[str]) -> None:
        """Tell those who named instruments that are no longer offered, or are again, or asked for all. They
        stay subscribed."""
        self.notify(
            change,
            lambda named: symbols if ALL in named else named.intersection(symbols),
            now_ms(),
            holds=True,
        )

    def _hold(self) -> Callable[[], None]:
        """To be called when all have been notified."""
        return ignore_end

    def notify(
        self,
        code: NoticeCode,
        concerned: Callable[[set[str]], Collection[str]],
        now_ms: int,
        *,
        holds: bool = False,
    ) -> None:
        """`concerned` picks the client's symbols, or "*", that the notice is about."""

        def make(topics: frozenset[str]) -> bytes | None:
            symbols = sorted(concerned(self.symbols_of(topics)))
            return encode(Notice(code=code, symbols=symbols, time=now_ms)) if symbols else None

        self.notify_all(make, holds=holds)

    def notify_all(self, make: MakeNotice, variant: int = 0, *, holds: bool) -> None:
        # All holds begin before the first one can end.
        ends = [self._hold() if holds else ignore_end for _ in self._hubs]
        for hub, on_end in zip(self._hubs, ends, strict=True):
            hub.notify(make, on_end, variant)

    def clear(self) -> None:
        """When the process ends, or the loop on which all of this lived."""
        self.hub.clear()


all_streams: list[Stream] = []
"""Of this process. Rooms add theirs in the `ready` of their app."""


def tell_offer(change: OfferChange, symbols: Collection[str], **_: Any) -> None:
    """All streams tell their clients which symbols are no longer offered, or are again."""
    for stream in all_streams:
        stream.tell_offer(change, symbols)


# Otherwise each attempt to open a stream would write a line.
ended_without_database = RepeatedWarning(
    logger, "%d streams ended because the database does not answer, the last one of: %s"
)

# What the client itself asked for, or what another log line tells.
NO_REFUSALS: frozenset[Code] = frozenset(("taken_over", "stream_closed", "internal_error"))
UNTRUSTED = (
    "The database has been unavailable for too long to confirm that your key is still valid. Try again later."
)


class Following:
    """What one socket follows of one stream."""

    __slots__ = ("goes_on", "replayed", "socket", "stream", "subscriptions")

    def __init__(self, socket: StreamConsumer, stream: Stream) -> None:
        self.socket, self.stream = socket, stream
        self.subscriptions = Subscriptions()
        self.replayed = ReplayAllowance()
        self.goes_on = False
        """Whether its client can continue elsewhere without missing anything."""

    @property
    def subscriber(self) -> Subscriber:
        return self.socket.subscriber

    @property
    def is_open(self) -> bool:
        return self.socket.is_open

    @property
    def hub(self) -> Hub | Share:
        return self.stream.hub_of(self.subscriber)

    def add(self, message: Subscribe) -> SubscriptionChange:
        """To what is subscribed. This lets the socket stay."""
        change = self.subscriptions.subscribe(message, catalogue.is_offered)
        if self.stream.kind.is_numbered:
            self.goes_on |= "seq" in self.subscriptions.features or message.resume is not UNSET
        self.socket.settle_in()
        return change

    def listen(self) -> None:
        """Make the hub send what is subscribed now."""
        stream, wanted = self.stream, self.subscriptions
        self.hub.subscribe(self.subscriber, stream.topics_of(wanted), stream.variant_of(wanted))
        self.socket.note_change()

    def say(self, answer: Control) -> None:
        text = encode(answer)
        # This reply says on every path which stream it is of.
        written = frame if isinstance(answer, Subscribed) else self.hub.written
        self.subscriber.send(written(text))

    def answer(self, message: Unsubscribe | List) -> None:
        wanted = self.subscriptions
        if isinstance(message, Unsubscribe):
            wanted.unsubscribe(message)
            self.listen()
        kind = Unsubscribed if isinstance(message, Unsubscribe) else Listed
        self.say(
            kind(
                symbols=wanted.symbols,
                timeframes=[*wanted.timeframes] or UNSET,
                categories=wanted.shown_categories,
                id=message.id,
                time=now_ms(),
            )
        )


class StreamConsumer(Consumer):
    HEARTBEAT_AFTER_S: ClassVar[float] = 10.0

    def __init__(self, stream: Stream | None = None) -> None:
        """Of all streams, on `/ws`, if none is named."""
        super().__init__()
        self.stream = stream
        self.path = ONE_SOCKET if stream is None else stream.kind.path
        self.hub = one_socket if stream is None else stream.hub

    def join(self, connection: WebSocketConnection) -> None:
        self.identity = Identity(self.scope)
        self._followed: tuple[Following, ...] = ()
        self._inbound = Inbound()
        self._slot: Slot | None = None
        connection.guard(MAX_BYTES, flooded)
        connection.farewell = farewell
        self.subscriber: Subscriber = self.hub.join(connection, self._too_slow)

    async def connect(self) -> None:
        await super().connect()
        # What is needed of it was read. All that waits for this socket holds it, in each of thousands.
        self.scope.clear()

    async def take_data(self, data: bytes, *, is_text: bool) -> None:
        self._inbound.take(passed_ms())
        if len(data) > MAX_BYTES:
            raise too_big()
        if not is_text:
            raise invalid("Send JSON as text, not as binary.")
        stream = self.stream
        if stream is None and (kind := named_kind(data)) is not None:
            stream = next(each for each in all_streams if each.kind is kind)
        try:
            message = read(data, MARKET if stream is None else stream.kind)
            try:
                await self.take(message, stream)
            except StreamRefused as refused:
                refused.id = message.id
                raise
        except StreamRefused as refused:
            if self.stream is None and stream is not None:
                refused.stream = stream.kind.name
            raise

    async def take(self, message: AnyMessage, stream: Stream | None) -> None:
        if isinstance(message, Subscribe) and stream is not None and not offers(stream, message.features):
            raise unknown_features()
        caller = await self.identity.show(message.api_key)
        if not self.is_open:
            return
        authenticated_sockets.add(self, caller.account_id)
        if stream is None or isinstance(message, Ping):
            self.say(Pong(id=message.id, time=now_ms()))
        elif isinstance(message, Subscribe):
            if self._slot is None:
                await self._claim(takeover=message.takeover)
            if self.is_open:
                await stream.subscribe(self._following(stream), message)
        else:
            self._following(stream).answer(message)

    def _following(self, stream: Stream) -> Following:
        for following in self._followed:
            if following.stream is stream:
                return following
        following = Following(self, stream)
        self._followed += (following,)
        return following

    def note_change(self) -> None:
        """What it follows has changed."""
        if self._slot is not None:
            open_streams.note_change(self._slot)

    def describe(self) -> StreamDetails:
        """For the account's owner, who may wonder which program this is."""
        followed = chain.from_iterable(each.subscriptions.symbols for each in self._followed)
        who, symbols = self.identity, list(dict.fromkeys(followed))
        more = max(0, len(symbols) - MOST_SYMBOLS)
        key_id = 0 if who.caller is None else who.caller.key_id
        return StreamDetails(key_id, who.address, who.agent, symbols[:MOST_SYMBOLS], more)

    def say(self, answer: Control) -> None:
        self.subscriber.send(frame(encode(answer)))

    async def answer_fault(self, error: Exception) -> None:
        if isinstance(error, StreamRefused):
            self._refuse(error)
            return
        if isinstance(error, TRANSIENT):
            ended_without_database.tell(error)
        else:
            logger.error("A message on %s could not be answered", self.path, exc_info=error)
        self.end("internal_error")

    def _refuse(self, refused: StreamRefused) -> None:
        if refused.code == "invalid_message" and self._inbound.is_one_too_many(passed_ms()):
            refused.close = TOO_MANY_INVALID
        if refused.close is None:
            self.say(refused.frame(now_ms()))
        else:
            self.end(refused)

    def end(self, why: Code | StreamRefused) -> None:
        """Leave, say why, and close."""
        refused = why if isinstance(why, StreamRefused) else StreamRefused(why)
        if self.is_open and refused.close is not None:
            self._log_end(refused.code, refused.close)
            self._let_go()
            last = frame(encode(refused.frame(now_ms())))
            self.hub.end(self.subscriber, refused.close, refused.code, last)

    def _log_end(self, code: Code, close: int) -> None:
        if code in NO_REFUSALS:
            return
        caller, key = self.identity.caller, shown_prefix(self.identity.key)
        known = {"account": caller.account_id if caller else None, "key": key}
        who = {name: value for name, value in known.items() if value}
        log_refusal(
            f"{close} {code}",
            self.identity.address,
            f"{self.path} closed with {close} {code}",
            route=self.path,
            **who,
        )

    def leave(self) -> None:
        self.hub.leave(self.subscriber)
        self._let_go()

    def _let_go(self) -> None:
        super().leave()
        # Each would keep the other alive until garbage is collected.
        self._followed = ()
        if self.identity.caller is not None:
            authenticated_sockets.remove(self, self.identity.caller.account_id)
        if self._slot is not None:
            self._slot.release()

    async def _claim(self, *, takeover: bool) -> None:
        changes = authenticated_sockets.changes
        caller = await self.identity.look_again()
        if not self.is_open:
            # A socket that is gone must not end another client's stream.
            return
        limit = caller.allowances.streams
        slot = await open_streams.claim(
            caller.counted_under,
            self.path,
            limit,
            takeover=takeover,
            on_end=self._lost_slot,
            describe=self.describe,
        )
        if isinstance(slot, SlotRefusal):
            raise too_many_streams(slot.limit, slot.open, is_page=caller.is_page)
        self._slot = slot
        if not caller.is_page:
            usage_buffer.note_stream(caller.account_id)
        if not self.is_open:
            slot.release()
        elif changes != authenticated_sockets.changes:
            # Its tier may have been lowered before this stream was counted.
            caller = await self.identity.look_again()
            await open_streams.enforce(caller.counted_under, caller.allowances.streams)

    def settle_in(self) -> None:
        """After a valid subscribe."""
        self.stay()
        if self._wants_heartbeat or self.identity.expires_at is not None:
            authenticated_sockets.watch(self)
        if self._slot is not None:
            self._slot.goes_on = all(each.goes_on for each in self._followed)

    @property
    def _wants_heartbeat(self) -> bool:
        return any("heartbeat" in each.subscriptions.features for each in self._followed)

    def renew(self, caller: Caller | None) -> None:
        if caller is None:
            self.end("invalid_api_key")
        elif self.is_open:
            self.identity.caller = caller
            if caller.expires_at is not None:
                authenticated_sockets.watch(self)

    def give_up(self) -> None:
        self.end(StreamRefused("internal_error", UNTRUSTED))

    def check_time(self, now_s: float) -> None:
        if self.identity.has_expired:
            self.end("invalid_api_key")
        elif self._wants_heartbeat and self.subscriber.has_been_silent_since(now_s - self.HEARTBEAT_AFTER_S):
            self.say(Heartbeat(time=now_ms()))

    def _lost_slot(self, code: EndCode) -> None:
        if code == "restarting":
            self._let_go()
            self.hub.end(self.subscriber, RESTARTING, last=frame(farewell()))
            return
        if code != "stream_limit_exceeded":
            self.end(code)
            return
        limit = self._slot.limit if self._slot is not None else 0
        self.end(too_many_streams(limit, limit))

    def first_is_late(self) -> None:
        self.end("subscribe_timeout")

    def _too_slow(self) -> None:
        self.end("slow_consumer")


def offers(stream: Stream, features: frozenset[RequestedFeature]) -> bool:
    """Only the demo has an instrument that misbehaves on request, and its candles do not."""
    kind = stream.kind
    misbehaves = settings.DEMO and kind.is_numbered and not kind.has_timeframes
    return misbehaves or features.isdisjoint(CHAOS)


def too_big() -> StreamRefused:
    """Our server closes with 1009 before this. Other servers let the message in, and daphne cannot close with
    it."""
    refused = invalid("A message has at most 16 KiB.", max=MAX_BYTES)
    refused.close = TOO_MANY_INVALID
    return refused


def farewell() -> bytes:
    return encode(Notice(code="restarting", time=now_ms()))


def flooded() -> bytes:
    return encode(StreamRefused("too_many_messages").frame(now_ms()))
