"""Who may subscribe, and until when; and what follows a subscribe on /ws/market and /ws/orderflow."""

from __future__ import annotations

from abc import abstractmethod
from itertools import chain
from typing import ClassVar

from django.conf import settings

from accounts.keys.caller import Caller
from accounts.open_streams.registry import open_streams
from accounts.open_streams.stream_slots import RETRY_AFTER_S, EndCode, Slot, SlotRefusal
from accounts.usage.buffer import usage_buffer
from core.clock import now_ms
from instruments.catalogue import catalogue
from market.runtime import is_heard
from market.streams import market_streams
from market.streams.hub.slow_readers import replay
from market.streams.protocol import replies
from market.streams.protocol.messages import ALL, CHAOS, AnyMessage, List, Subscribe, Unsubscribe, Wish
from market.streams.protocol.reading import unknown_features
from market.streams.protocol.refusals import StreamRefused
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import ReplayAllowance
from market.streams.stream import NumberedStream
from market.streams.wire import variant_of
from serving.websocket.framing import frame

from .authenticated import authenticated_sessions
from .session import StreamSession

# As final as a takeover: a client that came back by itself would have to be closed again and again.
CLOSED = "This stream was closed in the settings panel of your account."
UNTRUSTED = (
    "The database has been away for so long that nobody can tell whether your key still holds. Connect again "
    "in a while."
)


class StreamConsumer(StreamSession):
    HEARTBEAT_AFTER_S: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._subscriptions = Subscriptions()
        self._slot: Slot | None = None

    async def take(self, message: AnyMessage) -> None:
        if isinstance(message, Subscribe) and not self._offers(message.features):
            raise unknown_features()
        caller = await self._identity.show(message.api_key)
        if self._is_over:
            return
        authenticated_sessions.add(self, caller.account_id)
        if isinstance(message, Subscribe):
            if self._slot is None:
                await self._claim(takeover=message.takeover)
            self._subscribe(message)
        elif isinstance(message, Unsubscribe):
            self._unsubscribe(message)
        elif isinstance(message, List):
            self._say(replies.listed(self._subscriptions.symbols, now_ms(), message.id))
        else:
            self._say(replies.pong(now_ms(), message.id))

    def _offers(self, features: frozenset[Wish]) -> bool:
        """The demo has an instrument that misbehaves on request."""
        return (settings.DEMO and self.stream.kind.is_numbered) or features.isdisjoint(CHAOS)

    async def _claim(self, *, takeover: bool) -> None:
        changes = authenticated_sessions.changes
        caller = await self._identity.look_again()
        if self._is_over:
            # Nobody else's stream ends for a socket that is no more.
            return
        limit = caller.allowances.streams
        slot = await open_streams.claim(
            caller.account_id, self.stream.kind.path, limit, takeover=takeover, on_end=self._lost_slot
        )
        if isinstance(slot, SlotRefusal):
            raise too_many_streams(slot.limit, slot.open)
        self._slot = slot
        usage_buffer.note_stream(caller.account_id)
        if self._is_over:
            slot.release()
        elif changes != authenticated_sessions.changes:
            # Its tier may have been lowered before anybody knew of this stream.
            caller = await self._identity.look_again()
            await open_streams.enforce(caller.account_id, caller.allowances.streams)

    @abstractmethod
    def _subscribe(self, message: Subscribe) -> None:
        """Reply, then bring what was asked for."""

    @abstractmethod
    def _unsubscribe(self, message: Unsubscribe) -> None: ...

    def _settle_in(self) -> None:
        self._cancel_timer()
        self.stream.listeners.add(self)
        if "heartbeat" in self._subscriptions.features or self._identity.expires_at is not None:
            authenticated_sessions.watch(self)

    # What others tell it.

    @property
    def key(self) -> str:
        return self._identity.key

    @property
    def caller(self) -> Caller | None:
        return self._identity.caller

    def renew(self, caller: Caller | None) -> None:
        if self._is_over:
            return
        if caller is None:
            self.end(StreamRefused("invalid_api_key"))
        else:
            self._identity.caller = caller
            if caller.expires_at is not None:
                authenticated_sessions.watch(self)

    def give_up(self) -> None:
        self.end(StreamRefused("internal_error", UNTRUSTED))

    def look(self, now_s: float) -> None:
        if self._identity.has_expired:
            self.end(StreamRefused("invalid_api_key"))
        elif "heartbeat" in self._subscriptions.features and self._is_silent(now_s):
            self._say(replies.heartbeat(now_ms()))

    def _is_silent(self, now_s: float) -> bool:
        return self._subscriber is not None and self._subscriber.has_been_silent_since(
            now_s - self.HEARTBEAT_AFTER_S
        )

    def drop(self, gone: frozenset[str]) -> None:
        """Where instruments that are not offered any more are still told of."""

    def _lost_slot(self, code: EndCode) -> None:
        if code == "taken_over":
            self.end(StreamRefused("taken_over"))
        elif code == "closed":
            self.end(StreamRefused("taken_over", CLOSED))
        else:
            limit = self._slot.limit if self._slot is not None else 0
            self.end(too_many_streams(limit, limit))

    def _too_late(self) -> None:
        self.end(StreamRefused("subscribe_timeout"))

    def _too_slow(self) -> None:
        self.end(StreamRefused("slow_consumer"))

    def leave(self) -> None:
        self.stream.listeners.discard(self)
        if self._identity.caller is not None:
            authenticated_sessions.remove(self, self._identity.caller.account_id)
        if self._slot is not None:
            self._slot.release()


def is_known(symbol: str) -> bool:
    return catalogue.find(symbol) is not None


def too_many_streams(limit: int, number: int) -> StreamRefused:
    return StreamRefused("stream_limit_exceeded", limit=limit, open=number, retry_after=RETRY_AFTER_S)


class NumberedConsumer(StreamConsumer):
    stream: ClassVar[NumberedStream]

    def __init__(self) -> None:
        super().__init__()
        self._replayed = ReplayAllowance()

    def _subscribe(self, message: Subscribe) -> None:
        """Without an await: no frame comes between what is replayed and what is heard from now on."""
        if self._is_over or self._subscriber is None:
            return
        hub, subscriber, subscribed = self.stream.hub, self._subscriber, self._subscriptions
        subscribed.drop({symbol for symbol in subscribed.symbols if symbol != ALL and not is_known(symbol)})
        change = subscribed.subscribe(message, is_known)
        now = now_ms()
        opened = self.stream.open(message, subscribed, change, now, self._replayed)
        subscriber.wants_latest = "latest" in subscribed.features and self.stream.kind.can_conflate
        topics = self._topics()
        hub.unsubscribe(subscriber, subscriber.topics - topics)
        hub.subscribe(subscriber, topics, variant_of(subscribed.features))
        reply = replies.subscribed(
            self.stream.kind.name, subscribed.symbols, change.rejected, now, message.id, opened.goes_on
        )
        replay(hub.slow, subscriber, chain([frame(reply)], opened.frames))
        if change.joined and not is_heard():
            self._say(replies.notice("stale", change.joined, now))
        self._settle_in()

    def _unsubscribe(self, message: Unsubscribe) -> None:
        self._subscriptions.unsubscribe(message)
        if self._subscriber is not None:
            self.stream.hub.unsubscribe(self._subscriber, self._subscriber.topics - self._topics())
        self._say(replies.unsubscribed(self._subscriptions.symbols, now_ms(), message.id))

    def drop(self, gone: frozenset[str]) -> None:
        if self._subscriber is not None and not gone.isdisjoint(self._subscriptions.symbols):
            self._subscriptions.drop(gone)
            self.stream.hub.unsubscribe(self._subscriber, self._subscriber.topics - self._topics())

    def _topics(self) -> set[str]:
        return self.stream.faults.topics(self._subscriptions.symbols, self._subscriptions.features)


class MarketConsumer(NumberedConsumer):
    stream = market_streams.prices


class OrderFlowConsumer(NumberedConsumer):
    stream = market_streams.order_flow
