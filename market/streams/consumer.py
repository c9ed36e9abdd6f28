"""The base of the streams: who may subscribe, and until when."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from django.conf import settings

from accounts.slots import RETRY_AFTER_S, Code, Refusal, Slot
from accounts.streams import open_streams
from accounts.tiers import Caller
from accounts.usage_tally import usage
from instruments.catalogue import catalogue
from market.services import now_ms

from . import protocol
from .messages import CHAOS, AnyMessage, List, Subscribe, Unsubscribe, Wish
from .reading import unknown_features
from .refusals import Refused
from .socket import StreamSocket
from .sockets import sockets
from .subscriptions import Subscriptions

# As final as a takeover: a client that came back by itself would have to be closed again and again.
CLOSED = "This stream was closed in the settings panel of your account."

UNTRUSTED = (
    "The database has been away for so long that nobody can tell whether your key still holds. Connect again "
    "in a while."
)


class StreamConsumer(StreamSocket):
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

    def _offers(self, features: frozenset[Wish]) -> bool:
        """The demo has an instrument that misbehaves on request."""
        return (settings.DEMO and self.stream.kind.is_numbered) or features.isdisjoint(CHAOS)

    async def _claim(self, *, takeover: bool) -> None:
        changes = sockets.changes
        caller = await self._identity.look_again()
        if self._is_over:
            # Nobody else's stream ends for a socket that is no more.
            return
        limit = caller.allowances.streams
        slot = await open_streams.claim(
            caller.account_id, self.stream.kind.path, limit, takeover=takeover, on_end=self._lost_slot
        )
        if isinstance(slot, Refusal):
            raise too_many_streams(slot.limit, slot.open)
        self._slot = slot
        usage.note_stream(caller.account_id)
        if self._is_over:
            slot.release()
        elif changes != sockets.changes:
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
            sockets.watch(self)

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
            self.end(Refused("invalid_api_key"))
        else:
            self._identity.caller = caller
            if caller.expires_at is not None:
                sockets.watch(self)

    def give_up(self) -> None:
        self.end(Refused("internal_error", UNTRUSTED))

    def look(self, now_s: float) -> None:
        if self._identity.has_expired:
            self.end(Refused("invalid_api_key"))
        elif "heartbeat" in self._subscriptions.features and self._is_silent(now_s):
            self._say(protocol.heartbeat(now_ms()))

    def _is_silent(self, now_s: float) -> bool:
        return self._seat is not None and self._seat.has_been_silent_since(now_s - self.HEARTBEAT_AFTER_S)

    def drop(self, gone: frozenset[str]) -> None:
        """Where instruments that are not offered any more are still told of."""

    def _lost_slot(self, code: Code) -> None:
        if code == "taken_over":
            self.end(Refused("taken_over"))
        elif code == "closed":
            self.end(Refused("taken_over", CLOSED))
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
