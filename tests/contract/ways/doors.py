"""One service behind several doors on one loop: the short path, the ordinary path alone, and daphne."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from accounts.short_path import find
from serving.http.bounds import END_OF_HEAD
from serving.http.protocol import HttpProtocol
from serving.http.short_path import STATE_NAME, ShortPath
from serving.server import UVICORN_OPTIONS
from tests.contract.streams.daphne_server import DaphneServer
from tests.patience import PATIENCE_S

# What uvicorn sets each second, but for the time.
SAID_FIRST = [(b"date", b"Wed, 18 Nov 2026 12:00:00 GMT"), (b"server", b"uvicorn")]
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
LAST = re.compile(rb"\r\nconnection: *close", re.I)


_numbers = itertools.count()
FIRST_ADDRESS = IPv4Address("127.1.0.1")


class Door:
    """A port of the service."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard: list[str] = []
        """The paths of the requests that reached the application."""

    async def application(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        # Importing it names the settings, which a worker of the tests must not inherit.
        from config.asgi import application

        self.heard.append(scope["path"])
        await application(scope, receive, send)


class Talk:
    """A connection that is opened again where the server has closed it."""

    def __init__(self, door: Door) -> None:
        self._door, self._heard = door, b""
        # Requests without a valid key are counted by address.
        self._address = str(FIRST_ADDRESS + next(_numbers))
        self._client: socket.socket | None = None

    def ask(self, requests: bytes, count: int = 1) -> bytes:
        """All bytes of so many answers."""
        if self._client is None:
            self._client = socket.create_connection(
                ("127.0.0.1", self._door.port), timeout=PATIENCE_S, source_address=(self._address, 0)
            )
        self._client.sendall(requests)
        heard = [self._answer(self._client, requests.startswith(b"HEAD")) for _ in range(count)]
        assert self._heard == b""
        if LAST.search(heard[-1].partition(END_OF_HEAD)[0]):
            self.close()
        return b"".join(heard)

    def _answer(self, client: socket.socket, is_head: bool) -> bytes:
        self._read(client, lambda: END_OF_HEAD in self._heard)
        head, end, _ = self._heard.partition(END_OF_HEAD)
        found = None if is_head else LENGTH.search(head)
        size = len(head + end) + (int(found[1]) if found else 0)
        self._read(client, lambda: len(self._heard) >= size)
        answer, self._heard = self._heard[:size], self._heard[size:]
        return answer

    def _read(self, client: socket.socket, is_there: Callable[[], bool]) -> None:
        while not is_there():
            data = client.recv(65_536)
            assert data, self._heard
            self._heard += data

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


@contextmanager
def opened(server: DaphneServer, protocol: type[HttpProtocol], state: dict[str, Any]) -> Iterator[Door]:
    """A door of ours, beside daphne's."""
    door = Door(0)
    config = uvicorn.Config(
        door.application, interface="asgi3", log_config=None, access_log=False, **UVICORN_OPTIONS
    )
    config.load()
    said = ServerState()
    said.default_headers = SAID_FIRST

    async def listen() -> asyncio.Server:
        loop = asyncio.get_running_loop()
        make = lambda: protocol(config=config, server_state=said, app_state=state)  # noqa: E731
        return await loop.create_server(make, "127.0.0.1", 0)

    async def hang_up() -> None:
        listening.close()
        for connected in list(said.connections):
            connected.transport.abort()

    listening = server.run(listen())
    door.port = listening.sockets[0].getsockname()[1]
    yield door
    server.run(hang_up())


@contextmanager
def short_door(server: DaphneServer, protocol: type[HttpProtocol] = HttpProtocol) -> Iterator[Door]:
    with opened(server, protocol, {STATE_NAME: ShortPath(find)}) as door:
        yield door


@contextmanager
def ordinary_door(server: DaphneServer) -> Iterator[Door]:
    with opened(server, HttpProtocol, {}) as door:
        yield door
