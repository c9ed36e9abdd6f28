"""Control events over Redis: faster than polling, and heard even while the database is away."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import msgspec
from django.conf import settings
from redis import Redis as SyncRedis
from redis.asyncio import Redis
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import RedisError
from redis.retry import Retry

from core.background import BackgroundLoop
from core.fault_log import LastingFault

logger = logging.getLogger(__name__)
not_heard = LastingFault(logger, "No control events over Redis, trying again")

# Whoever revokes a key must not wait for a Redis that accepts connections and never answers.
TELL_WITHIN_S = 0.5
PING_EVERY_S = 1.0
SILENT_S = 3.0
TRY_AGAIN_S = 1.0


class EventMessage(msgspec.Struct):
    """An event, or without a kind only a reason to read the outbox."""

    position: int = 0
    kind: str = ""
    facts: dict[str, Any] = {}


def channel_of(url: str) -> str:
    """Redis does not keep the channels of its databases apart, so installations that share a server need a
    name for each database."""
    database = parse_url(url).get("db", 0)  # type: ignore[no-untyped-call]
    return f"tickwire:control-events:{database}"


@cache
def _teller(url: str) -> SyncRedis:
    once = Retry(NoBackoff(), 0)
    return SyncRedis.from_url(
        url, socket_timeout=TELL_WITHIN_S, socket_connect_timeout=TELL_WITHIN_S, retry=once
    )


def tell(event: EventMessage) -> None:
    """Tell the other processes, from any thread and after the commit. Processes that miss it read the event
    from the database."""
    if not settings.REDIS_URL:
        return
    try:
        _teller(settings.REDIS_URL).publish(channel_of(settings.REDIS_URL), msgspec.json.encode(event))
    except (RedisError, OSError) as error:
        logger.info("Could not tell the other processes: %s", error)


_awake: set[Callable[[], None]] = set()
"""Wakes the readers of this process."""


def wake_after_commits(wake: Callable[[], None]) -> None:
    _awake.add(wake)


def let_sleep(wake: Callable[[], None]) -> None:
    _awake.discard(wake)


def nudge() -> None:
    """Let every reader look now, after a commit."""
    for wake in tuple(_awake):
        wake()
    tell(EventMessage())


class ChannelListener:
    """Hears the events of other processes until `listen` is cancelled."""

    def __init__(self, hear: Callable[[EventMessage], None]) -> None:
        self._hear = hear
        self._answered_at = float("-inf")

    @property
    def is_connected(self) -> bool:
        return time.monotonic() - self._answered_at < SILENT_S

    async def listen(self, url: str) -> None:
        await BackgroundLoop(
            "control events over Redis",
            partial(self._connect, url),
            fault=not_heard,
            broke="Control events over Redis could not be heard, trying again",
            passing=(RedisError, OSError),
            after=TRY_AGAIN_S,
        ).run()

    async def _connect(self, url: str) -> None:
        redis = Redis.from_url(url, socket_connect_timeout=TELL_WITHIN_S)
        try:
            await self._listen(redis, channel_of(url))
        finally:
            self._answered_at = float("-inf")
            with suppress(RedisError, OSError):
                await redis.aclose()

    async def _listen(self, redis: Redis, name: str) -> None:
        async with redis.pubsub() as channel:
            await channel.subscribe(name)
            self._answered_at = time.monotonic()
            not_heard.over()
            # Events published before this are read from the database.
            self._hear(EventMessage())
            while True:
                message = await channel.get_message(timeout=PING_EVERY_S)
                if message is not None:
                    self._take(message)
                elif time.monotonic() - self._answered_at > SILENT_S:
                    raise TimeoutError("Redis does not answer")
                else:
                    await channel.ping()

    def _take(self, message: dict[str, Any]) -> None:
        self._answered_at = time.monotonic()
        if message["type"] == "message":
            try:
                self._hear(msgspec.json.decode(message["data"], type=EventMessage))
            except msgspec.DecodeError as error:
                logger.warning("A control event that this version does not know was passed over: %s", error)
                self._hear(EventMessage())
