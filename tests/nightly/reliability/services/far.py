"""A service that seems to be far away: what is sent to it comes late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

CHUNK = 64 * 1024


@asynccontextmanager
async def far(url: str, late_s: float) -> AsyncIterator[str]:
    """Another address of the same service, for as long as the test's loop turns."""
    address = urlsplit(url)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(address.hostname, address.port)
        for task in (
            asyncio.create_task(delay(reader, there[1])),
            asyncio.create_task(copy(there[0], writer)),
        ):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def delay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await read(reader):
            loop.call_later(late_s, writer.write, data)
        loop.call_later(late_s, writer.close)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await read(reader):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield address._replace(netloc=f"127.0.0.1:{port}").geturl()
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()


async def read(reader: asyncio.StreamReader) -> bytes:
    """Nothing once the connection has ended."""
    with suppress(OSError):
        return await reader.read(CHUNK)
    return b""
