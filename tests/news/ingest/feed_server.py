"""A server of feeds on loopback that says what a test wants it to say, well-behaved or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from core.background import cancel_and_wait

Say = Callable[[asyncio.StreamWriter], Awaitable[None]]
Answer = bytes | Say


class FeedServer:
    """Answers each path with what is put there; `asked` holds the heads of the requests as they came."""

    def __init__(self) -> None:
        self.paths: dict[str, Answer] = {}
        self.asked: list[str] = []
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> FeedServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await cancel_and_wait(*self._talks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            await self._talk(reader, writer)
        finally:
            writer.close()
            self._talks.discard(talk)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head)
            answer = self.paths.get(head.split()[1], reply(b"", status="404 Not Found"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)


def reply(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    named = {"Content-Type": "application/rss+xml", "Content-Length": str(len(body)), "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def redirect(to: str, status: str = "302 Found") -> bytes:
    return reply(b"", status, Location=to)


def rss(*items: str) -> bytes:
    return f'<rss version="2.0"><channel><title>A</title>{"".join(items)}</channel></rss>'.encode()


def item(title: str, guid: str = "", link: str = "", date: str = "", summary: str = "") -> str:
    parts = {"title": title, "guid": guid, "link": link, "pubDate": date, "description": summary}
    return f"<item>{''.join(f'<{name}>{text}</{name}>' for name, text in parts.items() if text)}</item>"


async def drip(writer: asyncio.StreamWriter) -> None:
    """A byte now and then, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n\r\n")
    async for letter in letters():
        writer.write(letter)
        await writer.drain()


async def letters() -> AsyncIterator[bytes]:
    while True:
        yield b"a"
        await asyncio.sleep(0.01)


def flood(total: int) -> Say:
    """So many bytes, without saying before how many they are."""

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        for _ in range(total // 65_536):
            writer.write(b" " * 65_536)
            await writer.drain()

    return say
