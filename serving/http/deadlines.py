"""How long a connection may take for what: one timer looks after all connections of a server."""

import asyncio
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from core.deadlines import patient

from . import refusals
from .bounds import RequestBody
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
    """Whether something moves fast enough: a grace first, then so many bytes a second."""

    __slots__ = ("_moved", "_since")

    def __init__(self, now: float) -> None:
        self._since, self._moved = now, 0

    def moved(self, total: int) -> None:
        """`total` is how many bytes have moved since it began."""
        self._moved = total

    def pause(self, seconds: float) -> None:
        """Leave out a time in which nothing moved through no fault of the other end."""
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
        """Called when it has ended, also as a WebSocket."""
        self._open -= 1
        self.connections.leave(connection)

    def forget(self, protocol: WatchedConnection) -> None:
        """It waits for nothing any more, or for something else from now on."""
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
