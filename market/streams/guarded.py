"""uvicorn's WebSocket protocol with bounds on what a client can make it hold or do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from .framing import frame

NOT_UTF8, TOO_BIG, TOO_MANY = 1007, 1009, 4413
# A client with little to say: so much is parsed before it can be refused, and so much may be unread.
SLICE_BYTES = 16 * 1024
MOST_FRAGMENTS, MOST_CONTROLS_A_SECOND, MOST_UNREAD = 128, 100, 200
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class GuardedProtocol(WebSocketsSansIOProtocol):
    _is_guarded = False
    _controls, _second = 0, 0.0
    _owed_pong = b""
    _flooded: Callable[[], bytes] | None = None

    @abstractmethod
    def close(self, code: int, reason: str = "", last: bytes = b"") -> None: ...

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None:
        self._is_guarded, self._flooded = True, flooded
        self.conn.max_message_size = max_bytes

    def data_received(self, data: bytes) -> None:
        if self._is_guarded:
            for start in range(0, len(data), SLICE_BYTES):
                if self.transport.is_closing():
                    return
                super().data_received(data[start : start + SLICE_BYTES])
            return
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            # uvicorn would leave it open without an answer: more headers than `websockets` takes, for one.
            self.transport.write(BAD_REQUEST)
            self.transport.close()

    def handle_ping(self) -> None:
        """The first ping of what was parsed at once answers all of them."""
        pong = b"".join(self.conn.data_to_send())
        self._count_control()
        if self.close_sent:
            return
        if self.writable.is_set():
            self.transport.write(pong)
        elif pong:
            # Only the newest: a client that sends pings and reads nothing must not fill the memory.
            self._owed_pong = pong

    def handle_pong(self, event: Frame) -> None:
        super().handle_pong(event)
        self._count_control()

    def handle_cont(self, event: Frame) -> None:
        if self._is_guarded and len(self.frames) >= MOST_FRAGMENTS:
            self.close(TOO_BIG)
        if not self.close_sent:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if not self.close_sent:
            if self.curr_msg_data_type == "text" and not is_utf8(self.frames):
                self.close(NOT_UTF8)
            elif self._is_guarded and self.queue.qsize() >= MOST_UNREAD:
                self._close_flood()
        super().send_receive_event_to_app()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._owed_pong and not self.close_sent:
            self.transport.write(self._owed_pong)
        self._owed_pong = b""

    def _count_control(self) -> None:
        now = self.loop.time()
        if now - self._second > 1:
            self._second, self._controls = now, 0
        self._controls += 1
        if self._is_guarded and self._controls > MOST_CONTROLS_A_SECOND and not self.close_sent:
            self._close_flood()

    def _close_flood(self) -> None:
        self.close(TOO_MANY, last=frame(self._flooded()) if self._flooded else b"")


def is_utf8(parts: list[bytes]) -> bool:
    try:
        b"".join(parts).decode()
    except UnicodeDecodeError:
        return False
    return True
