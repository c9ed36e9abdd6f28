"""A hundred requests at once: every connection is open and has sent all but its last bytes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from tests.patience import PATIENCE_S
from tests.reliability.services.processes import Process

Answer = tuple[int, bytes]
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def rush(servers: Sequence[Process], keys: Sequence[str], count: int = 100) -> Counter[int]:
    """The statuses of `count` simultaneous requests, spread evenly over servers and keys."""
    answers = asyncio.run(_rush(servers, keys, ["/api/symbols"] * count))
    return Counter(status for status, _ in answers)


def rush_for(servers: Sequence[Process], keys: Sequence[str], paths: Sequence[str]) -> list[Answer]:
    """The same, of a path each: statuses and all that was sent, in the order of the paths."""
    return asyncio.run(_rush(servers, keys, paths))


async def _rush(servers: Sequence[Process], keys: Sequence[str], paths: Sequence[str]) -> list[Answer]:
    async with asyncio.timeout(PATIENCE_S):
        # Keys change slower than servers, so that each server meets each key.
        count = len(servers)
        open_connections = [
            await _prepare(servers[n % count], keys[n // count % len(keys)], path)
            for n, path in enumerate(paths)
        ]
        for _, writer in open_connections:
            writer.write(b"\r\n")
        return await asyncio.gather(*(_answer(*both) for both in open_connections))


async def _prepare(server: Process, key: str, path: str) -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-API-Key: {key}\r\n"
    writer.write(head.encode())
    await writer.drain()
    return reader, writer


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(maxsplit=2)[1]), answer
