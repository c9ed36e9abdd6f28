"""The base of the streams: how a socket is opened, subscribed, answered and ended."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import chain
from typing import Any, ClassVar

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from accounts.events import PASSING
from accounts.slots import Code, Refusal, Slot
from accounts.streams import open_streams
from accounts.tiers import Caller
from instruments.catalogue import catalogue
from market.services import now_ms

from . import protocol
from .framing import frame
from .identity import Identity, is_for_us
from .inbound import MAX_BYTES, Inbound
from .messages import AnyMessage, List, Subscribe, Unsubscribe
from .outgoing import variant_of
from .reading import read
from .refusals import TOO_BIG, TOO_MANY_INVALID, Refused, invalid
from .replay import replay
from .seat import Seat
from .sockets import sockets
from .stream import NumberedStream
from .subscriptions import Subscriptions
from .wire import connection_of

logger = logging.getLogger(__name__)

# By then the slots of a process that was killed are free.
RETRY_AFTER_S = 5


class StreamConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    stream: ClassVar[NumberedStream]
    SUBSCRIBE_WITHIN_S: ClassVar[float] = 10.0
    HEARTBEAT_AFTER_S: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._is_over = False
        self._subscriptions = Subscriptions()
        self._inbound = Inbound()
        self._slot: Slot | None = None
        self._seat: Seat | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """One message after the other; without a channel layer, and the tasks that Channels waits in."""
        self.scope, self.base_send = scope, send
        self._identity = Identity(scope)
        try:
            while True:
                await self.dispatch(await receive())
        except StopConsumer:
            pass
        finally:
            self._leave()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' tidying of database connections, for which all sockets would share a thread."""
        try:
            await getattr(self, get_handler_name(message))(message)
        except StopConsumer:
            raise
        except Refused as refused:
            self._refuse(refused)
        except PASSING as error:
            logger.warning("A stream ends because the database does not answer: %s", error)
            self.end(Refused("internal_error"))
        except Exception:  # noqa: BLE001 - the top of a socket: it must not end without a word
            logger.exception("A message on %s could not be answered", self.stream.kind.path)
            self.end(Refused("internal_error"))

    async def connect(self) -> None:
        if not is_for_us(self.scope):
            await self.close()
            return
        connection = connection_of(self.scope, self.base_send)
        connection.guard(MAX_BYTES)
        connection.farewell = farewell
        self._seat = self.stream.hub.join(connection, self._too_slow)
        self._timer = asyncio.get_running_loop().call_later(self.SUBSCRIBE_WITHIN_S, self._too_late)
        await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._is_over:
            return
        self._inbound.take(monotonic_ms())
        data = bytes_data or b"" if text_data is None else text_data.encode()
        if len(data) > MAX_BYTES:
            self._end(TOO_BIG)
            return
        if text_data is None:
            raise invalid("Send JSON as text, not as binary.")
        message = read(data, self.stream.kind)
        try:
            await self._take(message)
        except Refused as refused:
            refused.id = message.id
            raise

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        raise StopConsumer

    async def _take(self, message: AnyMessage) -> None:
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

    # How it speaks and ends.

    def end(self, refused: Refused) -> None:
        """Say why, close, and be gone for everybody else."""
        self._end(refused.close or TOO_MANY_INVALID, refused.code, frame(protocol.error(refused, now_ms())))

    def _refuse(self, refused: Refused) -> None:
        if refused.code == "invalid_message" and self._inbound.is_last_straw(monotonic_ms()):
            refused.close = TOO_MANY_INVALID
        if refused.close is None:
            self._say(protocol.error(refused, now_ms()))
        else:
            self.end(refused)

    def _say(self, text: bytes) -> None:
        if self._seat is not None:
            self._seat.send(frame(text))

    def _end(self, code: int, reason: str = "", last: bytes = b"") -> None:
        if not self._is_over and self._seat is not None:
            self._is_over = True
            self._seat.end(code, reason, last)
            self._leave()

    def _leave(self) -> None:
        """Twice is harmless."""
        self._is_over = True
        self._cancel_timer()
        self.stream.listeners.discard(self)
        if self._seat is not None:
            self.stream.hub.leave(self._seat)
        if self._identity.caller is not None:
            sockets.remove(self, self._identity.caller.account_id)
        if self._slot is not None:
            self._slot.release()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def is_known(symbol: str) -> bool:
    return catalogue.find(symbol) is not None


def too_many_streams(limit: int, number: int) -> Refused:
    return Refused("stream_limit_exceeded", limit=limit, open=number, retry_after=RETRY_AFTER_S)


def farewell() -> bytes:
    return protocol.restarting(now_ms())


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
