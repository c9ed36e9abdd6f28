"""Which streams are open, over all processes. Each process tells of its own every second and is
forgotten three seconds after it stopped, so that a killed one leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
import uuid
from typing import Any

import msgspec
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

TELL_EVERY_S = 1.0
FORGOTTEN_AFTER_S = 3
PATIENCE_S = 0.5
# The names of the processes that told; to look for their keys would walk through all keys of Redis.
PROCESSES = "tickwire:streams"


class OpenStream(msgspec.Struct, frozen=True):
    """An authenticated open socket."""

    account_id: int
    path: str
    opened_at: float


class OpenStreams:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._here: dict[int, OpenStream] = {}
        self._process = uuid.uuid4().hex
        self._redis: Redis | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_away = False
        """Redis did not answer when it was last asked; the next telling finds out whether it does again."""

    async def start(self) -> None:
        if settings.REDIS_URL:
            self._redis = Redis.from_url(
                settings.REDIS_URL, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S
            )
            self._task = asyncio.create_task(self._keep_telling(), name="open streams")

    async def stop(self) -> None:
        self._here.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._redis is not None:
            with contextlib.suppress(RedisError, OSError):
                await self._redis.delete(self._key)
            await self._redis.aclose()
        self._task = self._redis = None

    def opened(self, account_id: int, path: str) -> int:
        """Note a stream; the number ends it again."""
        number = next(self._numbers)
        self._here[number] = OpenStream(account_id, path, time.time())
        return number

    def closed(self, number: int) -> None:
        self._here.pop(number, None)

    async def all(self) -> list[OpenStream]:
        """Over all processes; of this one alone while Redis does not answer."""
        here = list(self._here.values())
        if self._redis is None or self._is_away:
            return here
        try:
            # Around both questions, so that they do not wait one after the other.
            async with asyncio.timeout(PATIENCE_S):
                elsewhere = await self._told_elsewhere(self._redis)
        except (RedisError, OSError) as error:
            logger.warning("Only this process' streams are known: %s", error)
            self._is_away = True
            return here
        return here + [stream for told in elsewhere for stream in decode(told)]

    async def of(self, account_id: int) -> list[OpenStream]:
        return [stream for stream in await self.all() if stream.account_id == account_id]

    @property
    def _key(self) -> str:
        return f"{PROCESSES}:{self._process}"

    # Any: the types of redis-py allow for its client without await too.
    async def _told_elsewhere(self, redis: Any) -> list[bytes]:
        keys = [key for key in await redis.smembers(PROCESSES) if key != self._key.encode()]
        told = dict(zip(keys, await redis.mget(keys), strict=True)) if keys else {}
        if silent := [key for key, streams in told.items() if streams is None]:
            await redis.srem(PROCESSES, *silent)
        return [streams for streams in told.values() if streams is not None]

    async def _keep_telling(self) -> None:
        while self._redis is not None:
            try:
                await self._tell(self._redis)
                self._is_away = False
            except (RedisError, OSError) as error:
                logger.info("Could not tell of the open streams: %s", error)
                self._is_away = True
            await asyncio.sleep(TELL_EVERY_S)

    async def _tell(self, redis: Redis) -> None:
        told = msgspec.json.encode(list(self._here.values()))
        async with redis.pipeline() as both:
            both.set(self._key, told, ex=FORGOTTEN_AFTER_S)
            both.sadd(PROCESSES, self._key)
            await both.execute()


def decode(told: bytes) -> list[OpenStream]:
    return msgspec.json.decode(told, type=list[OpenStream])


open_streams = OpenStreams()
