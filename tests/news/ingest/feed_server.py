"""A server of feeds on loopback that says what a test wants it to say, well-behaved or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.local_http import LocalHttp, whole_answer

Say = Callable[[asyncio.StreamWriter], Awaitable[None]]
Answer = bytes | Say


class FeedServer(LocalHttp):
    """Answers each path with what is put there; `asked` holds the heads of the requests as they came."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: dict[str, Answer] = {}
        self.asked: list[str] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        answer = self.paths.get(head.split()[1], reply(b"", status="404 Not Found"))
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            await answer(writer)


def reply(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    return whole_answer(body, status, **{"Content-Type": "application/rss+xml"} | headers)


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
