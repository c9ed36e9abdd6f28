"""The answers of the last five minutes, in this process and, through Redis, in all others."""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, key_of

logger = logging.getLogger(__name__)
redis_away = LastingFault(logger, "Redis is away or full, analyses are kept per process")
KEPT_MS = 300_000

# Above this many, old answers are dropped.
SWEEP_ABOVE = 1_000
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class AnswerKey(NamedTuple):
    symbol: str
    model: str
    simulated: bool | None = None
    """Which series the prices belong to: an answer about simulated prices does not hold for real ones."""

    def __str__(self) -> str:
        kind = {True: "simulated", False: "real", None: ""}[self.simulated]
        return f"{self.symbol}:{self.model}:{kind}"


class CachedAnswer(NamedTuple):
    generated_ms: int
    fields: bytes
    """The JSON of the answer, without its braces."""

    def is_fresh(self, now_ms: int) -> bool:
        # Setting the clock back must not keep answers alive.
        return abs(now_ms - self.generated_ms) < KEPT_MS


class AnswerCache:
    # The longest wait for Redis; after a failure it is left alone for a while.
    PATIENCE_S = patient(0.5)
    RETRY_S = 5.0
    LOOK_S = 0.02

    def __init__(self) -> None:
        self._here: dict[AnswerKey, CachedAnswer] = {}
        self._redis: Redis | None = None
        self._away_until = 0.0

    async def start(self) -> None:
        if settings.REDIS_URL:
            self._redis = connect_redis(settings.REDIS_URL)

    async def stop(self) -> None:
        if self._redis is not None:
            await self._redis.aclose()
        self._redis, self._away_until = None, 0.0
        self._here.clear()

    async def get(self, key: AnswerKey, now_ms: int) -> CachedAnswer | None:
        entry = self._here.get(key)
        if entry is None or not entry.is_fresh(now_ms):
            entry = await self._get_shared(key)
        return entry if entry is not None and entry.is_fresh(now_ms) else None

    async def put(self, key: AnswerKey, entry: CachedAnswer) -> None:
        if len(self._here) >= SWEEP_ABOVE:
            self._here = {
                each: kept for each, kept in self._here.items() if kept.is_fresh(entry.generated_ms)
            }
        self._here[key] = entry
        value = b"%d:%s" % entry
        await self._ask(lambda redis: redis.set(key_of(f"analysis:{key}"), value, px=KEPT_MS))

    @contextlib.asynccontextmanager
    async def turn(self, key: AnswerKey, patience_s: float) -> AsyncIterator[None]:
        """Admits one process at a time. A turn expires after `patience_s`, in case its process has died."""
        name, token = key_of(f"analysis-turn:{key}"), uuid.uuid4().hex
        is_held = await self._wait_for_turn(name, token, patience_s)
        try:
            yield
        finally:
            if is_held:
                await self._ask(lambda redis: redis.eval(RELEASE, 1, name, token))

    async def _wait_for_turn(self, name: str, token: str, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        lasts_ms = int(patience_s * 1000)
        while self._is_shared and time.monotonic() < deadline:
            if await self._ask(lambda redis: redis.set(name, token, nx=True, px=lasts_ms)):
                return True
            await asyncio.sleep(self.LOOK_S)
        return False

    @property
    def _is_shared(self) -> bool:
        return self._redis is not None and time.monotonic() >= self._away_until

    async def _get_shared(self, key: AnswerKey) -> CachedAnswer | None:
        value = await self._ask(lambda redis: redis.get(key_of(f"analysis:{key}")))
        if not value:
            return None
        generated_ms, _, fields = value.partition(b":")
        entry = self._here[key] = CachedAnswer(int(generated_ms), fields)
        return entry

    async def _ask(self, asked: Callable[[Redis], Any]) -> Any:
        """None if Redis does not answer; then each process works alone."""
        if self._redis is None or not self._is_shared:
            return None
        try:
            async with asyncio.timeout(self.PATIENCE_S):
                answer = await asked(self._redis)
        except (RedisError, OSError) as error:
            redis_away.tell(error)
            self._away_until = time.monotonic() + self.RETRY_S
            return None
        redis_away.over()
        return answer
