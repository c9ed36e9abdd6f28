"""A socket of a stream: how it is opened, read and ended. What its messages mean, a consumer says."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from typing import Any, ClassVar

from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer

from core.clock import now_ms
from core.database import TRANSIENT
from core.fault_log import RepeatedWarning
from market.streams.hub.subscribers import Subscriber
from market.streams.protocol import refusals, replies
from market.streams.protocol.messages import AnyMessage
from market.streams.protocol.reading import MAX_BYTES, Inbound, read
from market.streams.protocol.refusals import TOO_MANY_INVALID, StreamRefused, invalid
from market.streams.stream import Stream
from serving.websocket.framing import frame
from serving.websocket.protocol import connection_of

from .identity import Identity, is_for_us

logger = logging.getLogger(__name__)

# Whoever tries to open a stream meanwhile would write a line.
ended_without_database = RepeatedWarning(
    logger, "%d streams ended because the database does not answer, the last one of: %s"
)


class StreamSession(AsyncWebsocketConsumer):  # type: ignore[misc]
    stream: ClassVar[Stream]
    SUBSCRIBE_WITHIN_S: ClassVar[float] = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._is_over = False
        self._inbound = Inbound()
        self._subscriber: Subscriber | None = None
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
        except StreamRefused as refused:
            self._refuse(refused)
        except TRANSIENT as error:
            ended_without_database.tell(error)
            self.end(StreamRefused("internal_error"))
        except Exception:  # noqa: BLE001 - the top of a socket: it must not end without a word
            logger.exception("A message on %s could not be answered", self.stream.kind.path)
            self.end(StreamRefused("internal_error"))

    async def connect(self) -> None:
        if not is_for_us(self.scope):
            await self.close()
            return
        connection = connection_of(self.scope, self.base_send)
        connection.guard(MAX_BYTES, flooded)
        connection.farewell = farewell
        self._subscriber = self.stream.hub.join(connection, self._too_slow)
        self._timer = asyncio.get_running_loop().call_later(self.SUBSCRIBE_WITHIN_S, self._too_late)
        await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._is_over:
            return
        self._inbound.take(monotonic_ms())
        data = bytes_data or b"" if text_data is None else text_data.encode()
        if len(data) > MAX_BYTES:
            raise too_big()
        if text_data is None:
            raise invalid("Send JSON as text, not as binary.")
        message = read(data, self.stream.kind)
        try:
            await self.take(message)
        except StreamRefused as refused:
            refused.id = message.id
            raise

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        raise StopConsumer

    @abstractmethod
    async def take(self, message: AnyMessage) -> None: ...

    @abstractmethod
    def leave(self) -> None:
        """Be gone for everybody else. Twice is harmless."""

    def end(self, refused: StreamRefused) -> None:
        """Say why, close, and be gone for everybody else."""
        if not self._is_over and self._subscriber is not None and refused.close is not None:
            told = frame(refusals.error(refused, now_ms()))
            self._subscriber.end(refused.close, refused.code, told)
            self._leave()

    def _refuse(self, refused: StreamRefused) -> None:
        if refused.code == "invalid_message" and self._inbound.is_last_straw(monotonic_ms()):
            refused.close = TOO_MANY_INVALID
        if refused.close is None:
            self._say(refusals.error(refused, now_ms()))
        else:
            self.end(refused)

    def _say(self, text: bytes) -> None:
        if self._subscriber is not None:
            self._subscriber.send(frame(text))

    def _leave(self) -> None:
        self._is_over = True
        self._cancel_timer()
        if self._subscriber is not None:
            self._subscriber.ended()
            self._subscriber = None
        self.leave()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def too_big() -> StreamRefused:
    """The wire closes with 1009 before; other servers let it in, and daphne cannot close with that."""
    refused = invalid("A message has at most 16 KiB.", max=MAX_BYTES)
    refused.close = TOO_MANY_INVALID
    return refused


def farewell() -> bytes:
    return replies.restarting(now_ms())


def flooded() -> bytes:
    return refusals.error(StreamRefused("too_many_messages"), now_ms())


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
