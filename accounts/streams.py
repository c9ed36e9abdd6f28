"""Which streams are open, over all processes. Each process tells of its own every second and is
forgotten three seconds after it stopped, so that a killed one leaves nothing behind."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import uuid

import msgspec
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

TELL_EVERY_S = 1.0
FORGOTTEN_AFTER_S = 3


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

    async def start(self) -> None:
        if settings.REDIS_URL:
            self._redis = Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
            self._task = asyncio.create_task(self._tell(), name="open streams")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._redis is not None:
            await self._redis.aclose()
        self._task = self._redis = None
        self._here.clear()

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
        if self._redis is None:
            return here
        try:
            keys = [key async for key in self._redis.scan_iter("tickwire:streams:*") if key != self._key]
            elsewhere = await self._redis.mget(keys) if keys else []
        except (RedisError, OSError) as error:
            logger.warning("Only this process' streams are known: %s", error)
            return here
        return here + [stream for told in elsewhere if told for stream in decode(told)]

    async def of(self, account_id: int) -> list[OpenStream]:
        return [stream for stream in await self.all() if stream.account_id == account_id]

    @property
    def _key(self) -> bytes:
        return f"tickwire:streams:{self._process}".encode()

    async def _tell(self) -> None:
        while self._redis is not None:
            try:
                told = msgspec.json.encode(list(self._here.values()))
                await self._redis.set(self._key, told, ex=FORGOTTEN_AFTER_S)
            except (RedisError, OSError) as error:
                logger.info("Could not tell of the open streams: %s", error)
            await asyncio.sleep(TELL_EVERY_S)


def decode(told: bytes) -> list[OpenStream]:
    return msgspec.json.decode(told, type=list[OpenStream])


open_streams = OpenStreams()
