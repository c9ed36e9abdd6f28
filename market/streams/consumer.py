"""The base of the streams: who may subscribe to what, and what follows. Which stream, a consumer says."""

from __future__ import annotations

from itertools import chain
from typing import ClassVar

from accounts.slots import Code, Refusal, Slot
from accounts.streams import open_streams
from accounts.tiers import Caller
from instruments.catalogue import catalogue
from market.services import now_ms

from . import protocol
from .framing import frame
from .messages import AnyMessage, List, Subscribe, Unsubscribe
from .outgoing import variant_of
from .refusals import Refused
from .replay import replay
from .socket import StreamSocket
from .sockets import sockets
from .stream import NumberedStream
from .subscriptions import Subscriptions

# By then the slots of a process that was killed are free.
RETRY_AFTER_S = 5


class StreamConsumer(StreamSocket):
    stream: ClassVar[NumberedStream]
    HEARTBEAT_AFTER_S: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._subscriptions = Subscriptions()
        self._slot: Slot | None = None

    async def take(self, message: AnyMessage) -> None:
        caller = await self._identity.show(message.api_key)
        if self._is_over:
            return
        sockets.add(self, caller.account_id)
        if isinstance(message, Subscribe):
            if self._slot is None:
                await self._claim(takeover=message.takeover)
            self._subscribe(message)
        elif isinstance(message, Unsubscribe):
            self._unsubscribe(message)
        elif isinstance(message, List):
            self._say(protocol.listed(self._subscriptions.symbols, now_ms(), message.id))
        else:
            self._say(protocol.pong(now_ms(), message.id))

    async def _claim(self, *, takeover: bool) -> None:
        changes = sockets.changes
        caller = await self._identity.look_again()
        limit = caller.allowances.streams
        slot = await open_streams.claim(
            caller.account_id, self.stream.kind.path, limit, takeover=takeover, on_end=self._lost_slot
        )
        if isinstance(slot, Refusal):
            raise too_many_streams(slot.limit, slot.open)
        self._slot = slot
        if self._is_over:
            slot.release()
        elif changes != sockets.changes:
            # Its tier may have been lowered before anybody knew of this stream.
            caller = await self._identity.look_again()
            await open_streams.enforce(caller.account_id, caller.allowances.streams)

    def _subscribe(self, message: Subscribe) -> None:
        """Without an await: no frame comes between what is replayed and what is heard from now on."""
        if self._is_over or self._seat is None:
            return
        hub, seat, subscribed = self.stream.hub, self._seat, self._subscriptions
        change = subscribed.subscribe(message, is_known)
        now = now_ms()
        opened = self.stream.open(message, subscribed, change, now)
        seat.wants_latest = "latest" in subscribed.features and self.stream.kind.can_conflate
        hub.unsubscribe(seat, change.left)
        hub.subscribe(seat, subscribed.symbols, variant_of(subscribed.features))
        reply = protocol.subscribed(
            self.stream.kind.name, subscribed.symbols, change.rejected, now, message.id, opened.goes_on
        )
        replay(hub, seat, chain([frame(reply)], opened.frames))
        self._settle_in()

    def _settle_in(self) -> None:
        self._cancel_timer()
        self.stream.listeners.add(self)
        if "heartbeat" in self._subscriptions.features or self._identity.expires_at is not None:
            sockets.watch(self)

    def _unsubscribe(self, message: Unsubscribe) -> None:
        change = self._subscriptions.unsubscribe(message)
        if self._seat is not None:
            self.stream.hub.unsubscribe(self._seat, change.left)
        self._say(protocol.unsubscribed(self._subscriptions.symbols, now_ms(), message.id))

    # What others tell it.

    @property
    def key(self) -> str:
        return self._identity.key

    @property
    def caller(self) -> Caller | None:
        return self._identity.caller

    def renew(self, caller: Caller | None) -> None:
        if caller is None:
            self.end(Refused("invalid_api_key"))
        else:
            self._identity.caller = caller
            if caller.expires_at is not None:
                sockets.watch(self)

    def look(self, now_s: float) -> None:
        if self._identity.has_expired:
            self.end(Refused("invalid_api_key"))
        elif "heartbeat" in self._subscriptions.features and self._is_silent(now_s):
            self._say(protocol.heartbeat(now_ms()))

    def _is_silent(self, now_s: float) -> bool:
        return self._seat is not None and now_s - self._seat.wrote_at >= self.HEARTBEAT_AFTER_S

    def lost_place(self, epoch: str) -> None:
        if "seq" in self._subscriptions.features:
            self._say(protocol.gap(self._subscriptions.symbols, epoch, now_ms()))

    def _lost_slot(self, code: Code) -> None:
        if code == "taken_over":
            self.end(Refused("taken_over"))
        else:
            limit = self._slot.limit if self._slot is not None else 0
            self.end(too_many_streams(limit, limit))

    def _too_late(self) -> None:
        self.end(Refused("subscribe_timeout"))

    def _too_slow(self) -> None:
        self.end(Refused("slow_consumer"))

    def leave(self) -> None:
        self.stream.listeners.discard(self)
        if self._identity.caller is not None:
            sockets.remove(self, self._identity.caller.account_id)
        if self._slot is not None:
            self._slot.release()


def is_known(symbol: str) -> bool:
    return catalogue.find(symbol) is not None


def too_many_streams(limit: int, number: int) -> Refused:
    return Refused("stream_limit_exceeded", limit=limit, open=number, retry_after=RETRY_AFTER_S)
