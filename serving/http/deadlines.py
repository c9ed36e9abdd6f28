"""The deadlines of a connection, and how it ends: one timer watches all connections of a server."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from core.deadlines import patient

from . import refusals
from .bounds import RequestBody, RequestHead
from .connections import AddressGroups, ClientConnection, ClientConnections, descriptors_are_used_up
from .refusals import HttpRefusal

BYTES_A_SECOND = 4 * 1024
C = TypeVar("C")


class HttpTimeouts:
    """In seconds. Tests replace them."""

    head_s = patient(10.0)
    """Counted from connecting, or from the first byte of a later head."""
    idle_s = patient(75.0)
    """Between requests: longer than the pauses of bots that ask every minute."""
    leave_s = 5.0
    """How long a client has to read an answer and close, once this end has closed."""
    grace_s = patient(10.0)
    """A body of 64 KiB ends within 26 s, and so does an answer that fills the kernel's buffers."""
    look_every_s = 0.5


class Deadline(Generic[C]):
    """One deadline for many connections, the same for all: they come due in the order of their starts."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[C, float] = {}

    def start(self, connection: C, now: float) -> None:
        self._ends.pop(connection, None)
        self._ends[connection] = now + self._seconds

    def stop(self, connection: C) -> None:
        self._ends.pop(connection, None)

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, connection: C) -> bool:
        return connection in self._ends

    def due(self, now: float) -> Iterator[C]:
        while self._ends:
            connection, ends_at = next(iter(self._ends.items()))
            if ends_at > now:
                return
            del self._ends[connection]
            yield connection


class TransferPace:
    """Whether a transfer is fast enough: a grace first, then a minimum of bytes per second."""

    __slots__ = ("_moved", "_since")

    def __init__(self, now: float) -> None:
        self._since, self._moved = now, 0

    def moved(self, total: int) -> None:
        """`total` is how many bytes have moved since it began."""
        self._moved = total

    def pause(self, seconds: float) -> None:
        """Excludes a pause that was not the other end's fault."""
        self._since += seconds

    def is_too_slow(self, now: float, grace_s: float) -> bool:
        return now - self._since > grace_s + self._moved / BYTES_A_SECOND


class WatchedConnection(Protocol):
    """A connection as the watch sees it."""

    flow: FlowControl
    body: RequestBody

    @property
    def taken_bytes(self) -> int: ...
    def head_is_late(self) -> None: ...
    def close_unused(self) -> None: ...
    def has_not_left(self) -> None: ...
    def abort_unread(self) -> None: ...
    def refuse(self, refusal: HttpRefusal) -> None: ...


class ConnectionWatch:
    def __init__(self, loop: asyncio.AbstractEventLoop, limits: HttpTimeouts) -> None:
        self.loop, self.limits = loop, limits
        groups = AddressGroups(settings.TRUSTED_PROXIES, loopback_counts=settings.CONNECTIONS_CAP_LOOPBACK)
        self.connections = ClientConnections(groups, settings.CONNECTIONS_PER_ADDRESS)
        self.heads: Deadline[WatchedConnection] = Deadline(limits.head_s)
        self.idle: Deadline[WatchedConnection] = Deadline(limits.idle_s)
        self.leaving: Deadline[WatchedConnection] = Deadline(limits.leave_s)
        self.bodies: dict[WatchedConnection, TransferPace] = {}
        self.unread: dict[WatchedConnection, TransferPace] = {}
        self._open = 0
        self.now = loop.time()
        """The time of the last look: exact enough for waits of a minute."""
        self._timer: asyncio.TimerHandle | None = None

    def arrived(self, host: str, transport: asyncio.Transport) -> tuple[ClientConnection, HttpRefusal | None]:
        self._open += 1
        if self._timer is None:
            self.now = self.loop.time()
            self._timer = self.loop.call_later(self.limits.look_every_s, self._look)
        return self.connections.arrive(host, transport)

    def left(self, connection: ClientConnection) -> None:
        """Called when it has ended, as a WebSocket too."""
        self._open -= 1
        self.connections.leave(connection)

    def forget(self, protocol: WatchedConnection) -> None:
        """It waits for nothing any more, or begins another wait."""
        self.heads.stop(protocol)
        self.idle.stop(protocol)
        self.bodies.pop(protocol, None)
        self.unread.pop(protocol, None)

    def _look(self) -> None:
        self.now = self.loop.time()
        for protocol in self.heads.due(self.now):
            protocol.head_is_late()
        for protocol in self.idle.due(self.now):
            protocol.close_unused()
        self._look_at_bodies()
        self._look_at_unread()
        for protocol in self.leaving.due(self.now):
            protocol.has_not_left()
        self.connections.look_at_limit()
        if descriptors_are_used_up():
            self.connections.restore_reserve()
        self._timer = self.loop.call_later(self.limits.look_every_s, self._look) if self._open else None

    def _look_at_bodies(self) -> None:
        for protocol, pace in list(self.bodies.items()):
            if protocol.flow.read_paused:
                # The application has not asked for it yet.
                pace.pause(self.limits.look_every_s)
                continue
            pace.moved(protocol.body.received)
            if pace.is_too_slow(self.now, self.limits.grace_s):
                protocol.refuse(refusals.SLOW_BODY)

    def _look_at_unread(self) -> None:
        for protocol, pace in list(self.unread.items()):
            pace.moved(protocol.taken_bytes)
            if pace.is_too_slow(self.now, self.limits.grace_s):
                protocol.abort_unread()


_watches: WeakKeyDictionary[ServerState, ConnectionWatch] = WeakKeyDictionary()


def watch_of(server: ServerState, loop: asyncio.AbstractEventLoop, limits: HttpTimeouts) -> ConnectionWatch:
    found = _watches.get(server)
    if found is None:
        found = _watches[server] = ConnectionWatch(loop, limits)
    return found


# How a connection of HTTP ends: answered, refused, late or unread, and so that the client can see why.
class Exchange(RequestResponseCycle):
    """Its transport is the protocol, which can close while data is still to come."""

    transport: ClosingProtocol  # type: ignore[assignment]

    def send(self, message: Any) -> Coroutine[Any, Any, None]:
        begins = not self.response_started and not self.disconnected
        if begins and self.more_body and not self.transport.will_hear_the_rest():
            self.keep_alive = False
        return super().send(message)

    def give_up(self) -> None:
        """Tells the application that the client is gone, and drops what it still sends."""
        self.disconnected = True
        self.message_event.set()


# What a connection is doing.
IDLE, HEAD, BODY, ANSWERING, OVER = range(5)

# How much of what a client sends after a refusal is read.
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
        """Drops late data: left unread, it would cause a reset, which can overtake the answer."""
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
        # They refer to each other; breaking the cycle frees them at once.
        self.cycle = None  # type: ignore[assignment]
        del self.write

    def _is_over(self) -> None:
        self.state = OVER
        self._kept = b""
        self.watch.forget(self)
