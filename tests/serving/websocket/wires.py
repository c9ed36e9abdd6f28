"""uvicorn with the wire, and an application that lets the test hold each of its connections."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any, ParamSpec

import uvicorn
import uvloop

from serving.websocket.connection import WebSocketConnection
from serving.websocket.consumer import connection_of
from serving.websocket.protocol import WEBSOCKET_OPTIONS
from tests.patience import PATIENCE_S, until

P = ParamSpec("P")
MAX_BYTES = 16 * 1024
FLOODED = b"too much"
LARGE = b"x" * 8_000_000
LARGE_SIZE = b"content-length", b"%d" % len(LARGE)
TEXT, CLOSE, PING, PONG, CONT = 0x1, 0x8, 0x9, 0xA, 0x0


def on_uvloop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """The loop that the service runs on: it has transports of its own."""

    @functools.wraps(test)
    def run(*values: P.args, **named: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test(*values, **named))

    return run


class Held:
    """One connection, as the application has it."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self.connection = connection
        self.received: list[str | bytes] = []
        self.told: list[str] = []
        self.disconnected: int | None = None
        self.waiting_at_first = -1
        connection.watcher = self

    def paused(self) -> None:
        self.told.append("paused")

    def resumed(self) -> None:
        self.told.append("resumed")

    def ended(self) -> None:
        self.told.append("ended")


class App:
    def __init__(self, farewell: bytes = b"") -> None:
        self.held: list[Held] = []
        self.farewell = farewell
        self.is_guarding = True
        self.is_reading = asyncio.Event()
        self.is_reading.set()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [LARGE_SIZE]})
            await send({"type": "http.response.body", "body": LARGE})
            return
        await receive()
        held = Held(connection_of(scope, send))
        if self.is_guarding:
            held.connection.guard(MAX_BYTES, lambda: FLOODED)
        if self.farewell:
            held.connection.farewell = lambda: self.farewell
        await send({"type": "websocket.accept"})
        held.waiting_at_first = held.connection.waiting
        self.held.append(held)
        while True:
            await self.is_reading.wait()
            event = await receive()
            if event["type"] == "websocket.disconnect":
                held.disconnected = event["code"]
                return
            held.received.append(event.get("text") or event.get("bytes") or "")


class RawClient:
    """A WebSocket client that can be as rude as it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(
        cls, port: int, buffer: int = 0, path: str = "/ws", trusts: SSLContext | None = None
    ) -> RawClient:
        made = socket.socket()
        if buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
        name = "127.0.0.1" if trusts else None
        opened = asyncio.open_connection(sock=made, limit=buffer or 2**16, ssl=trusts, server_hostname=name)
        client = cls(*await opened)
        client.writer.write(handshake(path=path))
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head
        assert b"permessage-deflate" not in head.lower()
        return client

    def send(self, opcode: int, payload: bytes = b"", *, fin: bool = True) -> None:
        self.writer.write(masked(opcode, payload, fin=fin))

    async def hear(self) -> tuple[int, bytes]:
        """The opcode and payload of the next frame; whole, or the test fails."""
        first, size = await self.exactly(2)
        assert first & 0xF0 == 0x80, "the server does not send fragments"
        assert not size & 0x80, "a server does not mask"
        if size >= 126:
            size = int.from_bytes(await self.exactly(2 if size == 126 else 8), "big")
        return first & 0x0F, await self.exactly(size)

    async def hear_all(self) -> list[tuple[int, bytes]]:
        """Until the server closes its side."""
        heard = []
        while True:
            try:
                heard.append(await self.hear())
            except (asyncio.IncompleteReadError, ConnectionError):
                return heard

    async def close_code(self) -> int:
        """With which the server closes, whatever comes before."""
        while True:
            opcode, payload = await self.hear()
            if opcode == CLOSE:
                return int.from_bytes(payload[:2], "big")

    async def exactly(self, size: int) -> bytes:
        # wait_for takes no notice of a cancellation in the moment in which something comes.
        async with asyncio.timeout(PATIENCE_S):
            return await self.reader.readexactly(size)

    def abort(self) -> None:
        self.writer.transport.abort()


class Serving:
    def __init__(self, app: App, server: uvicorn.Server, port: int) -> None:
        self.app, self.server, self.port = app, server, port
        self.clients: list[RawClient] = []

    async def open(self, *, buffer: int = 0, trusts: SSLContext | None = None) -> tuple[RawClient, Held]:
        known = len(self.app.held)
        client = await RawClient.connect(self.port, buffer, trusts=trusts)
        self.clients.append(client)
        await until(lambda: len(self.app.held) > known)
        return client, self.app.held[-1]

    @property
    def open_connections(self) -> int:
        return len(self.server.server_state.connections)


@asynccontextmanager
async def make_serving(farewell: bytes = b"", **options: Any) -> AsyncIterator[Serving]:
    app = App(farewell)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, lifespan="off", log_config=None, access_log=False, **WEBSOCKET_OPTIONS | options
        )
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([listener])
        serving = Serving(app, server, listener.getsockname()[1])
        try:
            yield serving
        finally:
            for client in serving.clients:
                client.abort()
            for listening in server.servers:
                listening.close()
            await until(lambda: not server.server_state.connections and not server.server_state.tasks)


def handshake(*headers: str, path: str = "/ws") -> bytes:
    lines = (
        f"GET {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Extensions: permessage-deflate",
        *headers,
    )
    return "\r\n".join([*lines, "", ""]).encode()


def masked(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    size, key = len(payload), os.urandom(4)
    head = bytes(((0x80 if fin else 0) | opcode,))
    if size < 126:
        head += bytes((0x80 | size,))
    elif size < 1 << 16:
        head += b"\xfe" + struct.pack("!H", size)
    else:
        head += b"\xff" + struct.pack("!Q", size)
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))
