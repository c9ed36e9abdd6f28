"""What pages say of an open stream besides: which key opened it, from where, and what it follows. Nothing is
decided by it, so it stands apart from the slots: each process writes what changed, together and once a second
at most, and whoever looks may find nothing yet."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.background import BackgroundLoop, TimeoutInSlices
from core.deadlines import patient
from core.fault_log import LastingFault

logger = logging.getLogger(__name__)
AWAY = (RedisError, OSError)
MOST_SYMBOLS = 30


class StreamDetails(msgspec.Struct, frozen=True, array_like=True):
    key_id: int
    """0 for our own pages."""
    address: str
    agent: str
    """What its client calls itself."""
    symbols: list[str]
    """The first of them; ["*"] for all."""
    more: int = 0


Describe = Callable[[], StreamDetails]


class Described(Protocol):
    """The slots of this process."""

    def numbers(self) -> Iterable[int]: ...

    def describe(self, number: int) -> StreamDetails | None: ...


class SharedDetails:
    """A hash in Redis for each process, by the numbers of its slots. It ends by itself with the process."""

    WRITE_EVERY_S = 1.0
    RENEW_EVERY_S = 60.0
    LASTS_S = 300
    MOST_AT_ONCE = 200
    PATIENCE_S = patient(0.5)

    def __init__(self, redis: Redis, root: str, process: str, here: Described) -> None:
        self._redis, self._root, self._process, self._here = redis, root, process, here
        self._changed: set[int] = set()
        self._gone: set[int] = set()
        self._renew_at = 0.0
        self.loop = BackgroundLoop(
            "stream details",
            self.write,
            fault=LastingFault(logger, "What streams follow is not shown", logging.INFO),
            broke="What streams follow could not be written, trying again",
            passing=AWAY,
            before=self.WRITE_EVERY_S,
        )

    def note(self, number: int) -> None:
        self._changed.add(number)

    def forget(self, number: int) -> None:
        self._changed.discard(number)
        self._gone.add(number)

    async def write(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._renew_at:
            self._renew_at = now + self.RENEW_EVERY_S
            await self._renew()
        while self._changed or self._gone:
            await self._write_some()

    async def _renew(self) -> None:
        """Redis may have lost all of it meanwhile."""
        async with TimeoutInSlices(self.PATIENCE_S):
            is_there = await self._redis.expire(self._key(self._process), self.LASTS_S)
        if not is_there:
            self._changed.update(self._here.numbers())

    async def _write_some(self) -> None:
        changed = list(itertools.islice(self._changed, self.MOST_AT_ONCE))
        gone = list(itertools.islice(self._gone, self.MOST_AT_ONCE))
        described = {number: self._here.describe(number) for number in changed}
        fields = {str(number): msgspec.msgpack.encode(each) for number, each in described.items() if each}
        # Taken out first, so that what changes once more meanwhile is written again.
        self._changed.difference_update(changed)
        self._gone.difference_update(gone)
        try:
            await self._send(fields, gone)
        except BaseException:
            self._changed.update(changed)
            self._gone.update(gone)
            raise

    async def _send(self, fields: dict[str, bytes], gone: list[int]) -> None:
        key = self._key(self._process)
        async with TimeoutInSlices(self.PATIENCE_S), self._redis.pipeline(transaction=False) as pipe:
            if fields:
                pipe.hset(key, mapping=fields)
                pipe.expire(key, self.LASTS_S)
            if gone:
                pipe.hdel(key, *map(str, gone))
            await pipe.execute()

    async def of(self, slots: Iterable[tuple[str, int]]) -> list[StreamDetails | None]:
        """By the processes and numbers of slots, in their order."""
        asked = list(slots)
        if not asked:
            return []
        found: list[bytes | None] = [None] * len(asked)
        with contextlib.suppress(*AWAY):
            async with TimeoutInSlices(self.PATIENCE_S), self._redis.pipeline(transaction=False) as pipe:
                for process, number in asked:
                    pipe.hget(self._key(process), str(number))
                found = await pipe.execute()
        return [each and msgspec.msgpack.decode(each, type=StreamDetails) for each in found]  # type: ignore[misc]

    async def stop(self) -> None:
        await self.loop.stop()
        with contextlib.suppress(*AWAY):
            async with TimeoutInSlices(self.PATIENCE_S):
                await self._redis.delete(self._key(self._process))

    def _key(self, process: str) -> str:
        return f"{self._root}details:{process}"
