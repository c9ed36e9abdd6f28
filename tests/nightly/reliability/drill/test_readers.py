"""What the drill's requests count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.nightly.reliability.drill.readers import Asker
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.row("5–8", "lost, doubled and interrupted are seen")
ANSWER = "HTTP/1.1 {} X\r\nContent-Length: 2\r\nConnection: {}\r\n\r\nok"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SEVERAL = 3


def answering(status: int, connection: str, times: int = 1_000) -> Serve:
    """So many times in a connection, and hang up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(times):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER.format(status, connection).encode())
            await writer.drain()
        writer.close()

    return serve


async def breaking_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(ANSWER.format(200, "keep-alive").encode()[:-1])
    writer.close()


async def not_answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


@pytest.mark.parametrize(
    ("serve", "status"),
    [
        (answering(200, "close"), 200),
        (answering(200, "keep-alive", times=1), 200),
        (answering(200, "keep-alive"), 200),
        (answering(500, "keep-alive"), 500),
        (breaking_off, 0),
        (not_answering, 0),
    ],
)
async def test_only_an_answer_that_does_not_end_is_broken(serve: Serve, status: int) -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        asker = Asker([server.sockets[0].getsockname()[1]], "key", "/", a_second=500.0)
        asking = asyncio.create_task(asker.ask(0))
        await until(lambda: asker.statuses.total() >= SEVERAL)
        asking.cancel()
        await asyncio.wait([asking], timeout=PATIENCE_S)
    assert set(asker.statuses) == {status}


async def test_answer_to_a_key_that_is_no_longer_used_does_not_count() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readuntil(b"\r\n\r\n"):
            if b"first" in request:
                asker.use("second")
            status = 500 if b"first" in request else 200
            writer.write(ANSWER.format(status, "keep-alive").encode())

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        asker = Asker([server.sockets[0].getsockname()[1]], "first", "/", a_second=500.0)
        asking = asyncio.create_task(asker.ask(0))
        await until(lambda: asker.statuses.total() >= SEVERAL)
        asking.cancel()
        await asyncio.wait([asking], timeout=PATIENCE_S)
    assert set(asker.statuses) == {200}


def test_minute_is_any_sixty_seconds() -> None:
    asker = Asker([1], "key", "/", a_second=1.0)
    asker.admitted_at += [0.0, 30.0, 59.9, 60.0, 89.9, 200.0]
    assert asker.most_in_a_minute() == 4
