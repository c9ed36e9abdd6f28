"""`python -m tests.nightly.benchmarks.history.walkers PORT KEY` walks through history repeatedly."""

from __future__ import annotations

import asyncio
import sys

import httpx

from .walk import PATH

WALKS = 10


async def walk(client: httpx.AsyncClient) -> None:
    asked: dict[str, str | int] = {"limit": 10_000}
    while True:
        answer = await client.get(PATH, params=asked)
        # The cursor is near the end; to read a million rows here would slow the walks down.
        following = answer.raise_for_status().content[-300:].partition(b'"next":"')[2].rstrip(b'"}').decode()
        asked = {"limit": 10_000, "cursor": following} if following else {"limit": 10_000}


async def main() -> None:
    port, key = sys.argv[1:]
    headers = {"X-API-Key": key, "Accept-Encoding": "identity"}
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client,
        asyncio.TaskGroup() as walks,
    ):
        for _ in range(WALKS):
            walks.create_task(walk(client))


if __name__ == "__main__":
    asyncio.run(main())
