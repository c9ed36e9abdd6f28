"""A venue's HTTP side on a local socket; a test says what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit


class Request(NamedTuple):
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]


class Reply:
    """Writes one answer: at once, or a chunk at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def whole(self, body: bytes, status: str = "200 OK", **headers: str) -> None:
        await self._begin(status, {"Content-Length": str(len(body)), "Connection": "close", **headers})
        await self._send(body)

    async def begin(self, status: str = "200 OK") -> None:
        await self._begin(status, {"Transfer-Encoding": "chunked"})

    async def chunk(self, data: bytes) -> None:
        await self._send(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self._send(b"0\r\n\r\n")

    def cut(self) -> None:
        """The connection goes without a word."""
        self._writer.transport.abort()

    async def left(self) -> None:
        """When the client has closed the connection; a ConnectionError if it was torn."""
        await self._reader.read()

    async def _begin(self, status: str, headers: dict[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        await self._send("\r\n".join([*lines, "", ""]).encode())

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Answer = Callable[[Request, Reply], Awaitable[None]]


class HttpVenue:
    """Listens at the same port each time it is started."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = _request((await reader.readuntil(b"\r\n\r\n")).decode())
            self.requests.append(request)
            await self._answer(request, Reply(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            # The client went, as clients do.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()


def _request(head: str) -> Request:
    first, *lines = head.strip().split("\r\n")
    target = first.split(" ")[1]
    parts = urlsplit(target)
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Request(target, parts.path, dict(parse_qsl(parts.query)), headers)
