"""How a connection of HTTP ends: answered, refused, late or unread, and so that the client can see why."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from . import refusals
from .bounds import RequestBody, RequestHead
from .connections import ClientConnection
from .deadlines import BYTES_A_SECOND, HttpTimeouts, TransferPace, watch_of
from .refusals import HttpRefusal


class Exchange(RequestResponseCycle):
    """Its transport is the protocol, which knows how to close when something is still to come."""

    transport: ClosingProtocol  # type: ignore[assignment]

    def send(self, message: Any) -> Coroutine[Any, Any, None]:
        begins = not self.response_started and not self.disconnected
        if begins and self.more_body and not self.transport.will_hear_the_rest():
            self.keep_alive = False
        return super().send(message)

    def give_up(self) -> None:
        """The application hears that the client is gone; what it still says goes nowhere."""
        self.disconnected = True
        self.message_event.set()


# What a connection is doing.
IDLE, HEAD, BODY, ANSWERING, OVER = range(5)

# Of what a client still sends after a refusal, this much is read.
MOST_SWALLOWED = 32 * 1024

# At most this many connections wait at once for their client to read why they ended, even in a flood.
MOST_LEAVING = 1_000


class ClosingProtocol(HttpToolsProtocol):
    limits: ClassVar[HttpTimeouts] = HttpTimeouts()
    write: Callable[[bytes | bytearray], object]
    connection: ClientConnection
    cycle: Exchange
    body = RequestBody(0, 0)
    state = HEAD
    unread_at = 0
    """How much was waiting when the client began to read too slowly."""
    _swallowed = 0
    _kept = b""
    """What came while an answer was due."""
    _is_last = False
    """Nothing is read after this request."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.watch = watch_of(self.server_state, self.loop, self.limits)
        self.head = RequestHead()

    @abstractmethod
    def will_hear_the_rest(self) -> bool:
        """Whether another request may follow an answer that goes out before the whole body has come."""

    @property
    def is_answering(self) -> bool:
        return self.state in (BODY, ANSWERING)

    @property
    def taken_bytes(self) -> int:
        return self.unread_at - self.transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        return self.state == OVER or self.transport.is_closing()

    def close(self) -> None:
        """After an answer that says so."""
        if self.state != OVER:
            self.leave()

    def leave(self) -> None:
        """Close this side, and let the client read all before it meets a reset."""
        self._is_over()
        if self.transport.is_closing():
            return
        if len(self.watch.leaving) >= MOST_LEAVING or not self.transport.can_write_eof():
            self.transport.close()
        else:
            self.transport.write_eof()
            self.flow.resume_reading()
        self.unread_at = self.transport.get_write_buffer_size()
        self.watch.leaving.start(self, self.loop.time())

    def has_not_left(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if 0 < unread < self.unread_at - self.limits.leave_s * BYTES_A_SECOND:
            self.unread_at = unread
            self.watch.leaving.start(self, self.loop.time())
        else:
            self.abort()

    def refuse(self, refusal: HttpRefusal) -> None:
        if self.state == OVER:
            return
        refusals.refused_total.labels(refusal.reason).inc()
        refusals.log(refusal, self.client[0] if self.client else "")
        is_answered = self.is_answering and self.cycle.response_started
        if self.is_answering and not self.cycle.response_complete:
            self.cycle.give_up()
        if not is_answered and not self.transport.is_closing():
            self.write(refusals.answer(refusal, self.server_state.default_headers))
        self.leave()
        if refusal.reason == "body":
            # There is too much of it to be swallowed.
            self.flow.pause_reading()

    def swallow(self, size: int) -> None:
        """Drop what came too late. Left unread, it would cause a reset, which can overtake the answer."""
        self._swallowed += size
        if self._swallowed > MOST_SWALLOWED:
            self.flow.pause_reading()

    def head_is_late(self) -> None:
        if self.head.size:
            self.refuse(refusals.SLOW_HEAD)
        else:
            refusals.refused_total.labels("slow_head").inc()
            self.close_unused()

    def close_unused(self) -> None:
        self._is_over()
        self.transport.close()

    def abort(self) -> None:
        self._is_over()
        self.transport.abort()

    def abort_unread(self) -> None:
        refusals.refused_total.labels("unread").inc()
        if self.is_answering:
            self.cycle.give_up()
        self.abort()

    def shutdown(self) -> None:
        """Requests that have begun are answered first."""
        if self.state == IDLE or (self.state == HEAD and not self.head.size):
            self.close_unused()
        elif self.state != OVER:
            self._is_last = True
            if self.is_answering:
                self.cycle.keep_alive = False

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread_at = self.transport.get_write_buffer_size()
        if self.unread_at:
            self.watch.unread[self] = TransferPace(self.loop.time())

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.state != OVER:
            self.watch.unread.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over()
        self.watch.left(self.connection)
        self.watch.leaving.stop(self)
        super().connection_lost(exc)
        # Each holds the other; so they go at once, and not when garbage is collected.
        self.cycle = None  # type: ignore[assignment]
        del self.write

    def _is_over(self) -> None:
        self.state = OVER
        self._kept = b""
        self.watch.forget(self)
