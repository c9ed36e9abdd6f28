"""A hub whose turns the test takes, connections that write it down, and messages to publish."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from socket import AF_UNIX, SOCK_SEQPACKET, socketpair
from typing import cast

from market.streams.hub.hub import Hub
from market.streams.hub.subscribers import ReplaceablePublication, Subscriber
from serving.websocket.connection import NO_DESCRIPTOR, ConnectionWatcher, payloads


class Turns:
    """A loop that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._soon: list[Callable[[], object]] = []
        self._later: list[tuple[float, Callable[[], object]]] = []

    @property
    def timers(self) -> int:
        return len(self._later)

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], object], /) -> None:
        self._soon.append(callback)

    def call_later(self, delay_s: float, callback: Callable[[], object], /) -> None:
        self._later.append((self.now + delay_s, callback))

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def turn(self) -> None:
        due, self._soon = self._soon, []
        for callback in due:
            callback()

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while due := [timer for timer in self._later if timer[0] <= until]:
            timer = min(due, key=lambda timer: timer[0])
            self._later.remove(timer)
            self.now = timer[0]
            timer[1]()
        self.now = until
        self.turn()


class RecordedConnection:
    """A connection. Once it is full, what is written waits until its client reads."""

    is_full = False
    fault: Exception | None = None

    def __init__(self) -> None:
        self._writes: list[bytes] = []
        self.closed: list[tuple[int, bytes]] = []
        self.waiting = 0
        self.is_aborted = False
        self.at_write: Callable[[], object] | None = None
        self.watcher: ConnectionWatcher | None = None
        self.farewell: Callable[[], bytes] | None = None
        self.flooded: Callable[[], bytes] | None = None
        self.at_restart: Callable[[], None] | None = None

    @property
    def descriptor(self) -> int:
        return NO_DESCRIPTOR

    @property
    def writes(self) -> list[bytes]:
        return self._writes

    @property
    def heard(self) -> list[str]:
        return [payload.decode() for payload in payloads(b"".join(self.writes))]

    def write(self, frames: bytes) -> None:
        if self.fault is not None:
            raise self.fault
        self.writes.append(frames)
        if self.at_write is not None:
            self.at_write()
        if self.is_full:
            self.waiting += len(frames)
            if self.watcher is not None:
                self.watcher.paused()

    def read(self) -> None:
        """Its client takes all that the connection holds, and goes on reading."""
        self.is_full, self.waiting = False, 0
        if self.watcher is not None:
            self.watcher.resumed()

    def guard(self, max_bytes: int, flooded: Callable[[], bytes] | None = None) -> None: ...

    def close(self, code: int, reason: str = "", last: bytes = b"") -> None:
        self.closed.append((code, last))

    def abort(self) -> None:
        self.is_aborted = True

    def clear(self) -> None: ...


class KernelConnection(RecordedConnection):
    """Its frames go straight to the kernel, and to `write` what the kernel does not take."""

    def __init__(self) -> None:
        # Packets, so that each write can be told from the next.
        self._ours, self._theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._full, self._unread = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._open = self._ours.dup()
        for end in (self._ours, self._theirs, self._full):
            end.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self._full.send(bytes(1 << 15))
        super().__init__()

    @property
    def descriptor(self) -> int:
        return NO_DESCRIPTOR if self.waiting else self._ours.fileno()

    @property
    def writes(self) -> list[bytes]:
        with suppress(BlockingIOError):
            while True:
                self._writes.append(self._theirs.recv(1 << 20))
        return self._writes

    def clear(self) -> None:
        for end in (self._ours, self._theirs, self._full, self._unread, self._open):
            end.close()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name in ("is_full", "fault"):
            # Under the same number there is a socket with room or one without.
            kept = self._full if self.is_full or self.fault else self._open
            os.dup2(kept.fileno(), self._ours.fileno())


class TextPublication:
    """`ab` is `ab` to everybody, and `ab:1` to those who asked for variant 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.encodings: list[int] = []

    @property
    def frame(self) -> bytes:
        return self.payload(0)

    def payload(self, variant: int) -> bytes:
        self.encodings.append(variant)
        return (f"{self.text}:{variant}" if variant else self.text).encode()


class Price(TextPublication):
    def __init__(self, text: str, volume: int) -> None:
        super().__init__(f"{text}×{volume}")
        self.name, self.volume = text, volume

    def over(self, older: ReplaceablePublication) -> Price:
        assert isinstance(older, Price)
        return Price(self.name, self.volume + older.volume)

    def notice(self, dropped: int) -> bytes:
        return f"{self.name} dropped {dropped}".encode()


class HubCase:
    """A hub, its connections and its turns of the loop."""

    def __init__(self, kind: type[RecordedConnection] = RecordedConnection) -> None:
        self._kind = kind
        self._connections: list[RecordedConnection] = []
        self.turns = Turns()
        self.hub = Hub(cast(asyncio.AbstractEventLoop, self.turns))
        self.slow: list[RecordedConnection] = []

    def join(
        self, *topics: str, variant: int = 0, latest: bool = False
    ) -> tuple[Subscriber, RecordedConnection]:
        connection = self._kind()
        self._connections.append(connection)
        subscriber = self.hub.join(connection, lambda: self.slow.append(connection))
        subscriber.wants_latest = latest
        self.hub.subscribe(subscriber, topics, variant)
        return subscriber, connection

    def say(self, *texts: str, topic: str = "EURUSD") -> None:
        for text in texts:
            self.hub.publish(TextPublication(text), topic)

    def turn(self) -> None:
        self.turns.turn()

    def clear(self) -> None:
        for connection in self._connections:
            connection.clear()
