"""One connection's place in the hub: what it is due, also while it reads too slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from .backlog import Backlog
from .connection import NO_DESCRIPTOR, Connection

if TYPE_CHECKING:
    from .groups import Group
    from .hub import Hub


Write = Callable[[bytes], object]


def ignore(frames: bytes) -> None:
    """Where the frames of a connection go that is over."""


class Seat:
    __slots__ = (
        "_hub",
        "_said_at",
        "_waiters",
        "backlog",
        "connection",
        "descriptor",
        "group",
        "is_open",
        "is_paused",
        "on_slow",
        "wants_latest",
        "write",
    )

    def __init__(self, hub: Hub, connection: Connection, group: Group, on_slow: Callable[[], None]) -> None:
        self._hub, self.connection, self.group, self.on_slow = hub, connection, group, on_slow
        self.attach()
        self.backlog: Backlog | None = None
        self.is_open, self.is_paused = True, False
        self.wants_latest = False
        """Whether only the newest message of each topic should wait when it reads too slowly."""
        self._said_at = 0.0
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def topics(self) -> set[str]:
        return {audience.topic for audience in self.group.audiences}

    @property
    def wrote_at(self) -> float:
        """The loop's time of the last frames that it was due."""
        to_many = (audience.wrote_at for audience in self.group.audiences)
        return max(self._said_at, self.group.wrote_at, *to_many)

    def has_been_silent_since(self, at: float) -> bool:
        """Asked of thousands each second: after something of late, its audiences are not looked at."""
        return max(self._said_at, self.group.wrote_at) <= at and self.wrote_at <= at

    @property
    def is_conflating(self) -> bool:
        return self in self._hub.slow.conflating

    def send(self, frames: bytes) -> None:
        """To this one alone, after all that was published before and before all that comes."""
        self._hub.settle()
        self._said_at = self._hub.loop.time()
        self._hub.hand(self, self.write, frames)

    async def drained(self) -> None:
        """Until nothing waits for this client outside of the kernel, or it is gone."""
        if self.backlog is not None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def end(self, code: int, reason: str = "", last: bytes = b"") -> None:
        """Close after all that it was due; a slow reader is due only `last`."""
        self._hub.settle()
        self._hub.leave(self)
        self._hub.closed[code] += 1
        self.connection.close(code, reason, last)

    def sit(self, group: Group) -> None:
        self._said_at, self.group = self.wrote_at, group
        group.add(self)

    def attach(self) -> None:
        """What is due goes to the connection, or past it as long as nothing waits there. The group has to be
        renewed after it."""
        self.write: Write = self.connection.write
        self.descriptor = self.connection.descriptor

    def redirect(self, write: Write) -> None:
        """What is due goes there from now on."""
        self.write, self.descriptor = write, NO_DESCRIPTOR
        self.group.renew()

    def leave(self) -> None:
        self.is_open = False
        self.redirect(ignore)

    def paused(self) -> None:
        self.is_paused = True
        if self.is_open and self.backlog is None:
            self._hub.slow.hold(self)

    def resumed(self) -> None:
        self.is_paused = False
        if self.backlog is not None:
            # Not from inside the transport, which may be in the middle of a write.
            self._hub.loop.call_soon(self._drain)

    def ended(self) -> None:
        self._hub.leave(self)

    def put(self, frames: bytes) -> None:
        """What `write` is while the client reads too slowly."""
        if self.backlog is None:
            return
        self.backlog.put(frames)
        if self.backlog.is_too_long(self.connection.waiting):
            self._hub.slow.give_up(self)

    def wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _drain(self) -> None:
        while self.backlog is not None and not self.is_paused:
            portion = self.backlog.take()
            if not portion:
                self._hub.slow.release(self)
                return
            self.backlog.moved(self._hub.loop.time(), self.connection.waiting)
            self._hub.hand(self, self.connection.write, portion)
