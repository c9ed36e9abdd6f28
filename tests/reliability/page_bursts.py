"""Many at once who ask for pages, and what a server holds open for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import httpx

from tests.reliability.processes import Process


async def burst(server: Process, path: str, at_once: int, rounds: int) -> Counter[int]:
    """The statuses; 0 where the connection ended without an answer. All of a round go at once."""
    statuses: Counter[int] = Counter()
    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=server.url, limits=limits, timeout=30) as client:

        async def ask() -> None:
            try:
                statuses[(await client.get(path, headers={"Accept": "text/html"})).status_code] += 1
            except httpx.TransportError:
                statuses[0] += 1

        for _ in range(rounds):
            await asyncio.gather(*(ask() for _ in range(at_once)))
    return statuses


def open_files(pid: int, name: str) -> int:
    """Descriptors of a process that are open on files of this name: on SQLite, its connections."""
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += descriptor.readlink().name == name
        except FileNotFoundError:
            continue
    return found


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
