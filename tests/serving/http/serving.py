"""The protocol of HTTP, with limits of the test's choice, and an application that notes what it is given."""

from __future__ import annotations

import asyncio
import re
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import uvicorn

from serving.http.deadlines import HttpTimeouts
from serving.http.protocol import HttpProtocol
from serving.http.short_path import STATE_NAME, ShortPath
from serving.server import UVICORN_OPTIONS, take_port
from tests.patience import PATIENCE_S, wait_until

HOST = b"Host: 127.0.0.1\r\n"
LARGE = b"x" * 8_000_000
NOTHING: Mapping[str, Any] = {}
# For those who are refused, and do not go.
SOON = {"look_every_s": 0.05, "leave_s": 0.5}


class App:
    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.received: list[int] = []
        self.disconnected = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.requests.append(scope)
        if "unread" not in scope["path"]:
            await self._read(receive)
        body = LARGE if scope["path"] == "/large" else b"answered"
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _read(self, receive: Any) -> None:
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected += 1
                break
            size += len(message["body"])
            if not message["more_body"]:
                break
        self.received.append(size)


class ShiftedTime:
    """A loop whose clock goes on when the test says so."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self.shift_s = loop, 0.0

    def time(self) -> float:
        return self._loop.time() + self.shift_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class CountingProtocol(HttpProtocol):
    clocks: ClassVar[list[ShiftedTime]]
    received: ClassVar[int] = 0
    parsed: ClassVar[int] = 0
    """Headers."""

    def __init__(self, *given: Any, **named: Any) -> None:
        if not self.clocks:
            self.clocks.append(ShiftedTime(asyncio.get_running_loop()))
        super().__init__(*given, **named | {"_loop": self.clocks[0]})

    def data_received(self, data: bytes) -> None:
        CountingProtocol.received += len(data)
        super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        CountingProtocol.parsed += 1
        super().on_header(name, value)


class Serving:
    def __init__(self, app: App, server: uvicorn.Server, port: int, clocks: list[ShiftedTime]) -> None:
        self.app, self.port, self._server, self._clocks = app, port, server, clocks

    @property
    def connections(self) -> set[Any]:
        return self._server.server_state.connections

    @property
    def tasks(self) -> set[Any]:
        return self._server.server_state.tasks

    @property
    def open_connections(self) -> int:
        return len(self.connections)

    def offer(self, way: ShortPath) -> None:
        """To the connections that come."""
        self._server.lifespan.state[STATE_NAME] = way

    def pass_time(self, seconds: float) -> None:
        """For the limits of ours. There is no clock before there is a connection."""
        for clock in self._clocks:
            clock.shift_s += seconds

    @contextmanager
    def all_read(self, size: int) -> Iterator[None]:
        """What is sent within has arrived at the end."""
        before = CountingProtocol.received
        yield
        wait_until(lambda: CountingProtocol.received - before >= size)

    def begin_to_stop(self) -> None:
        self._server.should_exit = True

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def converse(self, *parts: bytes, gap_s: float = 0.01) -> bytes:
        """All that comes until the server closes."""
        with self.connect() as client:
            with suppress(ConnectionError):
                for part in parts:
                    client.sendall(part)
                    time.sleep(gap_s)
            return hear(client)


def flood(client: socket.socket, piece: bytes) -> None:
    """Until it is answered, and then as much as the kernel takes."""
    client.setblocking(False)
    rest = piece
    while True:
        is_answered = bool(select.select([client], [client], [], PATIENCE_S)[0])
        try:
            rest = rest[client.send(rest) :] or piece
        except BlockingIOError:
            if is_answered:
                break
        except ConnectionError:
            break
    client.setblocking(True)


def hear(client: socket.socket) -> bytes:
    heard = bytearray()
    with suppress(ConnectionError):
        while data := client.recv(1 << 20):
            heard += data
    return bytes(heard)


def statuses(heard: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", heard)]


@contextmanager
def serving(
    changed: Mapping[str, Any] = NOTHING, asked: App | None = None, /, **limits: float
) -> Iterator[Serving]:
    """With other options of uvicorn's, and other limits of ours."""
    chosen = type("Chosen", (HttpTimeouts,), limits)()
    clocks = list[ShiftedTime]()
    protocol = type("Limited", (CountingProtocol,), {"limits": chosen, "clocks": clocks})
    CountingProtocol.received = 0
    app = asked or App()
    with take_port("127.0.0.1", 0) as listener:
        options = UVICORN_OPTIONS | {
            "http": protocol,
            "log_config": None,
            "access_log": False,
            "lifespan": "off",
        }
        server = uvicorn.Server(uvicorn.Config(app, loop="uvloop", **options | dict(changed)))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield Serving(app, server, listener.getsockname()[1], clocks)
        server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
