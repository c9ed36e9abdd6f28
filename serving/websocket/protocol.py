"""uvicorn's WebSocket protocol for frames that are built once and written to many sockets. It depends on the
internals of the uvicorn that is pinned in pyproject.toml."""

import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from websockets.frames import Frame
from websockets.protocol import Protocol, State

from core.deadlines import patient

from .bounds import BoundedWebSocket
from .connection import NO_DESCRIPTOR, ConnectionWatcher, frame

WEBSOCKET_EXTENSION = "tickwire.wire"
NOTHING: Mapping[str, Any] = MappingProxyType({})
RESTARTING = 1012

# The kernel doubles it. By default it would keep 4 MB for each client that does not read.
SEND_BUFFER_BYTES = 64 * 1024

# How long a client has to read the rest and answer a close. It is less for one that is not reading already.
LINGER_S, STALLED_LINGER_S = 5.0, 2.0


class WebSocketProtocol(BoundedWebSocket):
    """Only whole frames are written, each at once, so that different writers never mix."""

    watcher: ConnectionWatcher | None = None
    farewell: Callable[[], bytes] | None = None
    at_restart: Callable[[], None] | None = None
    # Set by the server's HTTP protocol, if it has them.
    extensions: Mapping[str, Any] = NOTHING
    on_lost: Callable[[], None] | None = None
    write: Callable[[bytes], object]
    _is_over = _is_encrypted = _is_past_handshake = False
    _early = b""

    @property
    def descriptor(self) -> int:
        if self._is_over or not self.writable.is_set() or self.transport.is_closing() or self._is_encrypted:
            return NO_DESCRIPTOR
        return cast(int, self.transport.get_extra_info("socket").fileno())

    @property
    def waiting(self) -> int:
        return self.transport.get_write_buffer_size()

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        if self._is_over or self.transport.is_closing():
            return
        if self.conn.state is State.OPEN:
            self.conn.send_close(code, reason)
        self.transport.write(last + b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.frames = []
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        # The client's answer to the close may come after messages that are no longer read.
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self._end()

    def abort(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # The request's protocol and its parser refer to each other, and keep all of the request alive.
        transport.get_protocol().parser = None
        self.write = transport.write
        self._is_encrypted = transport.get_extra_info("sslcontext") is not None
        kernel = transport.get_extra_info("socket")
        kernel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        # Writing is paused as soon as the kernel does not take everything, so that the rest can be counted
        # and nothing overtakes it. Under TLS a buffer counts as full at the limit, so 0 would always be full.
        transport.set_write_buffer_limits(high=1 if self._is_encrypted else 0, low=0)
        if self.waiting:
            # An earlier answer still waits, which only the protocol of that request knows.
            self.writable.clear()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            cast(dict[str, Any], self.scope["extensions"]).update(
                self.extensions, **{WEBSOCKET_EXTENSION: self}
            )

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated and not self.handshake_complete:
            # The client did not wait for the answer. A bad frame, parsed now, would end a stream that has not
            # begun.
            self._early += data
            self.read_paused = True
            self.transport.pause_reading()
        else:
            super().data_received(data)

    async def send(self, message: Any) -> None:
        if self.close_sent and self.handshake_complete:
            # The protocol closed it, as at a flood, while the application was still sending.
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent and self.initial_response is not None:
            # uvicorn forgets that a handshake that was answered like a request is over, and logs a fault.
            self.handshake_complete = True
        if not self._is_past_handshake and self.conn.state is State.OPEN:
            self._forget_handshake()
        if self._early and self.handshake_complete:
            early, self._early = self._early, b""
            if not self.transport.is_closing():
                self.read_paused = False
                self.transport.resume_reading()
                self.data_received(early)
        if self.close_sent:
            self._end()

    def _forget_handshake(self) -> None:
        """Request, response and scope, and what was made of them, are a third of what a connection holds."""
        self._is_past_handshake = True
        del self.request, self.response, self.scope
        self.server = self.client = None
        self.extensions = NOTHING
        # The parser that began with the request keeps it.
        self.conn.parser = Protocol.parse(self.conn)
        next(self.conn.parser)

    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
            return
        self.stop_keepalive()
        if self.at_restart is not None:
            self.at_restart()
            return
        self.close(RESTARTING, last=frame(self.farewell()) if self.farewell else b"")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.watcher is not None:
            self.watcher.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        # The pong that was owed may have filled it again.
        if self.watcher is not None and self.writable.is_set():
            self.watcher.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def handle_close(self, event: Frame) -> None:
        super().handle_close(event)
        self._end()

    def handle_parser_exception(self) -> None:
        """Later frames are ignored: closing now would reset the socket, and the client would not receive the
        reason."""
        if not self._is_over and (why := self.conn.close_sent) is not None:
            message = {"type": "websocket.disconnect", "code": why.code, "reason": why.reason}
            self.queue.put_nowait(cast(Any, message))
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self._end(STALLED_LINGER_S)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._end(STALLED_LINGER_S)

    def on_task_complete(self, task: Any) -> None:
        super().on_task_complete(task)
        self._end()

    def _end(self, linger_s: float = LINGER_S) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self.close_timer is not None:
            self.close_timer.cancel()
        if not self.writable.is_set():
            linger_s = STALLED_LINGER_S
        # `transport.close()` would wait forever for a client that does not read.
        self.close_timer = self.loop.call_later(linger_s, self.transport.abort)
        if self.watcher is not None:
            self.watcher.ended()
            self.watcher = None


# permessage-deflate would need an encoding and 300 KB of memory for each client. A peer that is gone is
# noticed within 25 s. The size is that of the longest message that any socket takes; `guard` sets a lower
# one.
WEBSOCKET_OPTIONS: dict[str, Any] = {
    "ws": WebSocketProtocol,
    "ws_per_message_deflate": False,
    "ws_ping_interval": 10.0,
    "ws_ping_timeout": patient(15.0),
    "ws_max_size": 1024 * 1024,
}
