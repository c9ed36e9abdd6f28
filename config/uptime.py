"""Since when the service is up: the oldest of its processes that has been there without a pause."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from accounts.tasks import end

logger = logging.getLogger(__name__)

KEY = "tickwire:up-since"
# While any process lives it renews the key; a service that was down longer than this starts anew.
KEPT_S = 30
RENEW_S = 5

_since = time.time()
_redis: Redis | None = None
_task: asyncio.Task[None] | None = None


async def start() -> None:
    global _since, _redis, _task
    _since = time.time()
    if settings.REDIS_URL:
        _redis = Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
        _task = asyncio.create_task(_renew(), name="uptime")


async def stop() -> None:
    global _redis, _task
    await end(_task)
    if _redis is not None:
        await _redis.aclose()
    _redis = _task = None


async def started_at() -> float:
    if _redis is not None:
        with contextlib.suppress(RedisError, OSError):
            shared = await _redis.get(KEY)
            return min(_since, float(shared)) if shared else _since
    return _since


async def _renew() -> None:
    while _redis is not None:
        try:
            await _redis.set(KEY, str(_since), ex=KEPT_S, nx=True)
            await _redis.expire(KEY, KEPT_S)
        except (RedisError, OSError) as error:
            logger.info("Could not share since when the service is up: %s", error)
        await asyncio.sleep(RENEW_S)
