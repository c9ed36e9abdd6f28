"""A hundred requests at once: every connection is open and has sent all but its last bytes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from tests.reliability.processes import Process

ANSWERED_WITHIN_S = 15.0
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def rush(servers: Sequence[Process], keys: Sequence[str], count: int = 100) -> Counter[int]:
    """The statuses of `count` simultaneous requests, spread evenly over servers and keys."""
    return asyncio.run(_rush(servers, keys, count))


async def _rush(servers: Sequence[Process], keys: Sequence[str], count: int) -> Counter[int]:
    async with asyncio.timeout(ANSWERED_WITHIN_S):
        # Keys change slower than servers, so that each server meets each key.
        pairs = [(servers[n % len(servers)], keys[n // len(servers) % len(keys)]) for n in range(count)]
        open_connections = [await _prepare(server, key) for server, key in pairs]
        for _, writer in open_connections:
            writer.write(b"\r\n")
        return Counter(await asyncio.gather(*(_status(*both) for both in open_connections)))


async def _prepare(server: Process, key: str) -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"GET /api/symbols HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-API-Key: {key}\r\n"
    writer.write(head.encode())
    await writer.drain()
    return reader, writer


async def _status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(maxsplit=2)[1])
