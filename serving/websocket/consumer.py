"""The base of our Channels consumers: a WebSocket as the application sees it, from handshake to end."""

import asyncio
import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer

from core.addresses import address_of
from core.deadlines import patient
from core.logs import log_refusal
from core.request_headers import header, is_our_host

from .connection import NO_DESCRIPTOR, ConnectionWatcher, WebSocketConnection, payloads
from .protocol import WEBSOCKET_EXTENSION

logger = logging.getLogger(__name__)
HIGH_WATER_BYTES = 64 * 1024
Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

# Of a connection that is gone without a close.
ABNORMAL = 1006


class Consumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Each message is answered before the next one is read. Subclasses define the messages."""

    FIRST_WITHIN_S: ClassVar[float] = patient(10.0)
    """How long a client has to say something that lets it stay."""
    groups = ()
    is_open = False
    _timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Channels would make a task for each message, which takes memory while it waits, and tidy database
        connections before each, for which all sockets share a thread."""
        self.scope, self.base_send = scope, send
        code = ABNORMAL
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                await self.handle(message)
                # It would stay in memory until the next one comes.
                del message
            code = message["code"]
        finally:
            await self.disconnect(code)

    async def handle(self, message: dict[str, Any]) -> None:
        try:
            await getattr(self, get_handler_name(message))(message)
        except Exception as error:  # noqa: BLE001 - the top of a socket: its client must be notified
            await self.answer_fault(error)

    async def connect(self) -> None:
        if not self.is_welcome():
            path = self.scope["path"]
            log_refusal(
                "403 handshake", address_of(self.scope), "403 handshake", path=ascii(path)[1:-1], status=403
            )
            await self.close()
            return
        self.join(connection_of(self.scope, self.base_send))
        self.is_open = True
        self._timer = asyncio.get_running_loop().call_later(self.FIRST_WITHIN_S, self.first_is_late)
        await self.accept()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.is_open:
            data = bytes_data or b"" if text_data is None else text_data.encode()
            await self.take_data(data, is_text=text_data is not None)

    async def disconnect(self, code: int) -> None:
        if self.is_open:
            self.leave()

    def stay(self) -> None:
        """The client's first message came in time and is valid."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def leave(self) -> None:
        """Remove it from all registries."""
        self.is_open = False
        self.stay()

    def is_welcome(self) -> bool:
        """Whether it names this host. Pages of any origin may connect, because only a key opens anything."""
        return is_our_host(header(self.scope, b"host") or "")

    @abstractmethod
    def join(self, connection: WebSocketConnection) -> None: ...

    @abstractmethod
    def first_is_late(self) -> None: ...

    @abstractmethod
    async def take_data(self, data: bytes, *, is_text: bool) -> None: ...

    @abstractmethod
    async def answer_fault(self, error: Exception) -> None:
        """Answer a refusal, or whatever else went wrong with a message."""


def connection_of(scope: Scope, send: Send) -> WebSocketConnection:
    """Our server's own, else one over ASGI, as under daphne. It is taken out of the scope: each would keep
    the other alive until garbage is collected."""
    found: WebSocketConnection | None = (scope.get("extensions") or {}).pop(WEBSOCKET_EXTENSION, None)
    return found or AsgiConnection(send)


class AsgiConnection:
    """A connection under another ASGI server than ours. Frames are taken apart again and sent by one task.
    Where that server has no back-pressure, no client ever counts as slow."""

    def __init__(self, send: Send) -> None:
        self.watcher: ConnectionWatcher | None = None
        self.farewell: Callable[[], bytes] | None = None
        self.at_restart: Callable[[], None] | None = None
        self.flooded: Callable[[], bytes] | None = None
        self.waiting, self.descriptor = 0, NO_DESCRIPTOR
        self._send = send
        self._queue: deque[bytes] = deque()
        self._closing: dict[str, Any] | None = None
        self._is_over = self._is_paused = False
        self._sending: asyncio.Task[None] | None = None

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        """Left to the server and to the reader of the messages."""

    def write(self, frames: bytes) -> None:
        if not self._is_over:
            self._put(frames)

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        if not self._is_over:
            self._closing = {"type": "websocket.close", "code": code, "reason": reason}
            self._put(last)
            self._end()

    def abort(self) -> None:
        """ASGI has no such thing, so stop and leave the rest to the server."""
        if self._sending is not None and self._sending is not asyncio.current_task():
            self._sending.cancel()
        self._end()

    def _put(self, frames: bytes) -> None:
        self._queue.append(frames)
        self.waiting += len(frames)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all(), name="frames sent over ASGI")
        if self.waiting > HIGH_WATER_BYTES and not self._is_paused and self.watcher is not None:
            self._is_paused = True
            self.watcher.paused()

    async def _send_all(self) -> None:
        try:
            while self._queue:
                frames = self._queue.popleft()
                for payload in payloads(frames):
                    await self._send({"type": "websocket.send", "text": payload.decode()})
                self.waiting -= len(frames)
                if self._is_paused and not self.waiting:
                    self._is_paused = False
                    if self.watcher is not None:
                        self.watcher.resumed()
            if self._closing is not None:
                await self._send(self._closing)
        except Exception as error:  # noqa: BLE001 - each server says in its own way that a client is gone
            logger.info("A connection over ASGI ended: %s", error)
            self.abort()

    def _end(self) -> None:
        self._is_over = True
        watcher, self.watcher = self.watcher, None
        if watcher is not None:
            watcher.ended()
