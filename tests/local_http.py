"""A server of HTTP on a local socket, for tests that say themselves what it answers."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit


class Request(NamedTuple):
    method: str
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """By their names in small letters."""
    body: bytes


class LocalHttp(ABC):
    """Listens at the same port each time it is started."""

    def __init__(self) -> None:
        self._port = 0
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @abstractmethod
    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer. The client may go at any moment, as clients do."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self.talk(reader, writer)
        finally:
            self._talks.discard(task)
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    method, target, _ = first.split(" ")
    parts = urlsplit(target)
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, parts.path, dict(parse_qsl(parts.query)), headers, body)


def head_of(status: str, headers: dict[str, str]) -> bytes:
    """Of an answer. `Retry_After` stands for Retry-After."""
    named = (f"{name.replace('_', '-')}: {value}" for name, value in headers.items())
    return "\r\n".join([f"HTTP/1.1 {status}", *named, "", ""]).encode()


def whole_answer(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """After which the connection is closed."""
    return head_of(status, {"Content-Length": str(len(body)), "Connection": "close"} | headers) + body
