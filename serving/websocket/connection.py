"""What a hub asks of a connection; and a connection under any other ASGI server than ours, where frames
are taken apart again and sent by one task.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from .framing import payloads

NO_DESCRIPTOR = -1


class ConnectionWatcher(Protocol):
    def paused(self) -> None:
        """Its buffers are full. This may come from inside a write."""

    def resumed(self) -> None:
        """There is room again."""

    def ended(self) -> None:
        """A close frame went out or the socket is gone: nothing may be written any more."""


class WebSocketConnection(Protocol):
    watcher: ConnectionWatcher | None
    farewell: Callable[[], bytes] | None
    """Makes the payload that goes before the close when the server is shut down."""

    flooded: Callable[[], bytes] | None
    """Makes the payload that goes before the close at a flood."""

    @property
    def write(self) -> Callable[[bytes], object]:
        """Whole frames, at once and in order; it never waits."""

    @property
    def descriptor(self) -> int:
        """Of the kernel's socket, where frames may go straight there now; else `NO_DESCRIPTOR`."""

    @property
    def waiting(self) -> int:
        """Bytes that were written and not yet sent."""

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        """Its client has little to say: close on a longer message, and on many that nobody has read.

        Floods of pings, pongs and fragments close any connection."""

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        """After what was written and the frames `last`; abort if the client does not read it."""

    def abort(self) -> None: ...


logger = logging.getLogger(__name__)
HIGH_WATER_BYTES = 64 * 1024
Send = Callable[[dict[str, Any]], Awaitable[None]]


class AsgiConnection:
    """The server's own buffers are out of sight: where it has no back-pressure nobody is ever slow."""

    def __init__(self, send: Send) -> None:
        self.watcher: ConnectionWatcher | None = None
        self.farewell: Callable[[], bytes] | None = None
        self.flooded: Callable[[], bytes] | None = None
        self.waiting, self.descriptor = 0, NO_DESCRIPTOR
        self._send = send
        self._queue: deque[bytes] = deque()
        self._closing: dict[str, Any] | None = None
        self._is_over = self._is_paused = False
        self._sending: asyncio.Task[None] | None = None

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        """Left to the server and to whoever reads the messages."""

    def write(self, frames: bytes) -> None:
        if not self._is_over:
            self._put(frames)

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        if not self._is_over:
            self._closing = {"type": "websocket.close", "code": code, "reason": reason}
            self._put(last)
            self._end()

    def abort(self) -> None:
        """ASGI has no such thing: stop, and let the server notice the rest."""
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
                self._tell_resumed()
            if self._closing is not None:
                await self._send(self._closing)
        except Exception as error:  # noqa: BLE001 - each server says in its own way that a client is gone
            logger.info("A connection over ASGI ended: %s", error)
            self.abort()

    def _tell_resumed(self) -> None:
        if self._is_paused and not self.waiting:
            self._is_paused = False
            if self.watcher is not None:
                self.watcher.resumed()

    def _end(self) -> None:
        self._is_over = True
        watcher, self.watcher = self.watcher, None
        if watcher is not None:
            watcher.ended()
