"""uvicorn's WebSocket protocol with bounds on the memory and work that a client can cause."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from uvicorn._types import ASGIReceiveEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from .connection import frame

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


# What one connection waits for. asyncio's queue and event create five lists of 0.8 KB for waiters before
# there are any.
class Inbox:
    """Events for the application, which alone takes them, one after the other."""

    __slots__ = ("_events", "_loop", "_reader")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._events: list[Any] = []
        self._reader: Future[None] | None = None

    def qsize(self) -> int:
        return len(self._events)

    def empty(self) -> bool:
        return not self._events

    def put_nowait(self, event: Any) -> None:
        self._events.append(event)
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def take(self) -> Any:
        return self._events.pop(0)

    def arrival(self) -> Future[None]:
        """To be awaited when it is empty."""
        self._reader = self._loop.create_future()
        return self._reader


class Gate:
    """Open nearly always, so that those who wait have a list only while it is closed."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Future[None]] | None = None

    def is_set(self) -> bool:
        return self._waiting is None

    def set(self) -> None:
        waiting, self._waiting = self._waiting, None
        for each in waiting or ():
            if not each.done():
                each.set_result(None)

    def clear(self) -> None:
        if self._waiting is None:
            self._waiting = []

    async def wait(self) -> None:
        if self._waiting is not None:
            opened = self._loop.create_future()
            self._waiting.append(opened)
            await opened


NOT_UTF8, TOO_BIG, TOO_MANY = 1007, 1009, 4413

# This much is parsed before it can be refused. A frame has at least six bytes, and 4 KiB take 5 to 10 ms.
SLICE_BYTES = 4 * 1024
MOST_CONTROLS_A_SECOND, MOST_UNREAD = 100, 200

# For a message of 1 MiB, and for a client with little to say.
MOST_FRAGMENTS, FEW_FRAGMENTS = 1_024, 128
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """Bounds frames, fragments and what is parsed at once, from the handshake on and for every client."""

    flooded: Callable[[], bytes] | None = None
    _has_little_to_say = is_deaf = False
    _most_fragments = MOST_FRAGMENTS
    _controls, _second = 0, 0.0
    owed_pong = _kept = b""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._inbox = Inbox(self.loop)
        self.queue, self.writable = cast(Any, self._inbox), cast(Any, Gate(self.loop))

    @abstractmethod
    def close(self, code: int, reason: str = "", last: bytes = b"") -> None: ...

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        self._has_little_to_say, self._most_fragments, self.flooded = True, FEW_FRAGMENTS, flooded
        self.conn.max_message_size = max_bytes

    def data_received(self, data: bytes) -> None:
        data, self._kept = self._kept + data, b""
        for start in range(0, len(data), SLICE_BYTES):
            if self.is_deaf or self.transport.is_closing():
                return
            if not self.close_sent and self.queue.qsize() >= MOST_UNREAD:
                # One read may bring tens of thousands of messages. The rest waits unparsed.
                self._kept = data[start:]
                return
            super().data_received(data[start : start + SLICE_BYTES])
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            # uvicorn would leave it open unanswered, as after more headers than `websockets` takes.
            self.transport.write(BAD_REQUEST)
            self.transport.close()

    async def receive(self) -> ASGIReceiveEvent:
        inbox = self._inbox
        while inbox.empty():
            await inbox.arrival()
        event = inbox.take()
        if inbox.empty():
            if self._kept:
                self.data_received(b"")
            if self.read_paused and not self._kept and inbox.empty():
                self.read_paused = False
                self.transport.resume_reading()
        return cast(ASGIReceiveEvent, event)

    def handle_ping(self) -> None:
        """All pings that were parsed at once are answered with the first."""
        pong = b"".join(self.conn.data_to_send())
        self._count()
        if self.close_sent:
            return
        if self.writable.is_set():
            self.transport.write(pong)
        elif pong:
            # Only the newest is kept: a client that sends pings and never reads must not fill the memory.
            self.owed_pong = pong

    def handle_pong(self, event: Frame) -> None:
        super().handle_pong(event)
        self._count()

    def handle_text(self, event: Frame) -> None:
        super().handle_text(event)
        # The parser keeps the frame until another comes, and a client may be silent for days.
        event.data = b""

    def handle_bytes(self, event: Frame) -> None:
        super().handle_bytes(event)
        event.data = b""

    def handle_cont(self, event: Frame) -> None:
        if self.close_sent:
            self._count()
        elif len(self.frames) >= self._most_fragments:
            self.close(TOO_BIG)
            self._hear_no_more()
        else:
            super().handle_cont(event)
            event.data = b""

    def send_receive_event_to_app(self) -> None:
        if self.close_sent:
            self._count()
        elif self.curr_msg_data_type == "text" and not is_utf8(self.frames):
            self.close(NOT_UTF8)
        elif self._has_little_to_say and self.queue.qsize() >= MOST_UNREAD:
            self._close_flood()
        super().send_receive_event_to_app()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.owed_pong and not self.close_sent:
            self.transport.write(self.owed_pong)
        self.owed_pong = b""

    def _count(self) -> None:
        """Count what no reader takes: pings, pongs, and whatever comes after our close."""
        now = self.loop.time()
        if now - self._second > 1:
            self._second, self._controls = now, 0
        self._controls += 1
        if self._controls > MOST_CONTROLS_A_SECOND:
            self._close_flood()

    def _close_flood(self) -> None:
        if not self.close_sent:
            self.close(TOO_MANY, last=frame(self.flooded()) if self.flooded else b"")
        self._hear_no_more()

    def _hear_no_more(self) -> None:
        """Its answer to the close may be in what is no longer parsed. So our side is shut down, which makes
        the client go; otherwise the socket ends when the linger is over."""
        self.is_deaf = True
        if self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()


def is_utf8(parts: list[bytes]) -> bool:
    try:
        b"".join(parts).decode()
    except UnicodeDecodeError:
        return False
    return True
