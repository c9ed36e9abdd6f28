"""A venue's HTTP side on a local socket; a test says what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.local_http import LocalHttp, Request, head_of, read_request, whole_answer


class Reply:
    """Writes one answer: at once, or a chunk at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def whole(self, body: bytes, status: str = "200 OK", **headers: str) -> None:
        await self._send(whole_answer(body, status, **headers))

    async def begin(self, status: str = "200 OK", **headers: str) -> None:
        await self._send(head_of(status, {"Transfer-Encoding": "chunked"} | headers))

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

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Answer = Callable[[Request, Reply], Awaitable[None]]


def says(body: bytes, status: str = "200 OK", **headers: str) -> Answer:
    async def answer(_: Request, reply: Reply) -> None:
        await reply.whole(body, status, **headers)

    return answer


async def never(_: Request, reply: Reply) -> None:
    await reply.left()


class HttpVenue(LocalHttp):
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self._answer = answer

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        self.requests.append(request)
        await self._answer(request, Reply(reader, writer))
