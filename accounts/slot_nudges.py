"""Nudges over Redis pub/sub: a slot of this process was ended by another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redis.asyncio import Redis
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

TRY_AGAIN_S = 1.0


async def hear_nudges(redis: Redis, channel: str, look: Callable[[], None]) -> None:
    """For as long as it is not cancelled. A lost nudge costs a second: every beat looks too."""
    while True:
        try:
            async with redis.pubsub() as nudges:
                await nudges.subscribe(channel)
                async for _ in nudges.listen():
                    look()
        except (RedisError, OSError) as error:
            logger.info("No nudges about ended streams: %s", error)
        except Exception:  # noqa: BLE001 - the top of the task: a process deaf to takeovers is worse
            logger.exception("Nudges about ended streams could not be heard, trying again")
        await asyncio.sleep(TRY_AGAIN_S)
