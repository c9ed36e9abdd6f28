"""One timer for all connections of a server: who is late, who moves too slowly, and whether room is left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from django.conf import settings
from uvicorn.server import ServerState

from . import deadlines, descriptors, refusals
from .addresses import Groups
from .connections import Connection, Connections
from .deadlines import Deadline, Pace
from .refusals import Refusal

if TYPE_CHECKING:
    from .closing import ClosingProtocol

LOOK_EVERY_S = 0.5


class Limits:
    """A test may have others."""

    head_s = deadlines.HEAD_S
    idle_s = deadlines.IDLE_S
    leave_s = deadlines.LEAVE_S
    grace_s = deadlines.GRACE_S
    look_every_s = LOOK_EVERY_S


class Watch:
    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.loop, self.limits = loop, limits
        groups = Groups(settings.TRUSTED_PROXIES, loopback_counts=settings.CONNECTIONS_CAP_LOOPBACK)
        self.connections = Connections(groups, settings.CONNECTIONS_PER_ADDRESS)
        self.heads: Deadline[ClosingProtocol] = Deadline(limits.head_s)
        self.idle: Deadline[ClosingProtocol] = Deadline(limits.idle_s)
        self.leaving: Deadline[ClosingProtocol] = Deadline(limits.leave_s)
        self.bodies: dict[ClosingProtocol, Pace] = {}
        self.unread: dict[ClosingProtocol, Pace] = {}
        self._open = 0
        self.now = loop.time()
        """Of the last look: exact enough for those that wait for a minute."""
        self._timer: asyncio.TimerHandle | None = None

    def arrived(self, host: str, transport: asyncio.Transport) -> tuple[Connection, Refusal | None]:
        self._open += 1
        if self._timer is None:
            self.now = self.loop.time()
            self._timer = self.loop.call_later(self.limits.look_every_s, self._look)
        return self.connections.arrive(host, transport)

    def left(self, connection: Connection) -> None:
        """Also as a WebSocket."""
        self._open -= 1
        self.connections.leave(connection)

    def forget(self, protocol: ClosingProtocol) -> None:
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
        if descriptors.are_used_up():
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


_watches: WeakKeyDictionary[ServerState, Watch] = WeakKeyDictionary()


def watch_of(server: ServerState, loop: asyncio.AbstractEventLoop, limits: Limits) -> Watch:
    found = _watches.get(server)
    if found is None:
        found = _watches[server] = Watch(loop, limits)
    return found
