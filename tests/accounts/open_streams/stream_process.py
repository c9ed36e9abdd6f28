"""`python -m tests.accounts.open_streams.stream_process`: streams without sockets, led by lines."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import django

django.setup()

from accounts.keys.caller import of_keys  # noqa: E402
from accounts.open_streams.redis_slots import RedisSlots  # noqa: E402
from accounts.open_streams.registry import OpenStreams  # noqa: E402
from accounts.open_streams.stream_slots import Slot  # noqa: E402
from tests.patience import PATIENCE_S  # noqa: E402

# A machine busy with other things is no Redis that is away.
RedisSlots.PATIENCE_S = PATIENCE_S


class Process:
    def __init__(self) -> None:
        self.streams = OpenStreams()
        self.ends: list[str] = []

    async def claim(self, at: float, count: int, account_id: int, **asked: Any) -> int:
        """How many of so many simultaneous claims were admitted."""
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        keys = of_keys(account_id)
        claims = (self.streams.claim(keys, on_end=self.ends.append, **asked) for _ in range(count))
        return sum(isinstance(answer, Slot) for answer in await asyncio.gather(*claims))

    async def count(self, account_id: int) -> int:
        return len(await self.streams.of(of_keys(account_id)))

    async def ended(self) -> list[str]:
        return self.ends

    async def obey(self) -> None:
        loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        await self.streams.start()
        while line := await lines.readline():
            name, arguments = json.loads(line)
            print(json.dumps(await getattr(self, name)(**arguments)), flush=True)  # noqa: T201
        await self.streams.stop()


if __name__ == "__main__":
    asyncio.run(Process().obey())
