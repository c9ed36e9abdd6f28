"""The same window over Redis, for several processes: one script on Redis' own clock."""

from __future__ import annotations

import logging
import time

from prometheus_client import Counter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from .limits import MemoryWindow, Standing

logger = logging.getLogger(__name__)
fallbacks = Counter("tickwire_limit_fallbacks", "Requests counted per process because Redis did not answer.")

# A list of microsecond stamps, oldest first. Stamps from the future (Redis' clock was set back) go
# too: that over-admits once, where keeping them would lock the account out for as long as the step.
SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, cost, window = tonumber(ARGV[1]), tonumber(ARGV[2]), 60000000
local function at(index)
  local stamp = redis.call('LINDEX', KEYS[1], index)
  return stamp and tonumber(stamp)
end
while (at(0) or now) <= now - window do redis.call('LPOP', KEYS[1]) end
while (at(-1) or now) > now do redis.call('RPOP', KEYS[1]) end
local used = redis.call('LLEN', KEYS[1])
local admitted = used < limit and 1 or 0
if admitted == 1 and cost == 1 then
  redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[1], 61000)
  used = used + 1
end
local leaver = at(math.max(0, used - limit))
return {admitted, used, leaver and leaver + window - now or 0}
"""


class RedisWindow:
    """Counts in Redis; while it does not answer, each process counts alone and a metric says so."""

    # A request never waits longer for Redis than this, nor is Redis asked again sooner after a failure.
    PATIENCE_S = 0.5

    @classmethod
    async def connect(cls, url: str) -> RedisWindow:
        return cls(Redis.from_url(url, socket_timeout=cls.PATIENCE_S, socket_connect_timeout=cls.PATIENCE_S))

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._script = redis.register_script(SCRIPT)
        self._alone = MemoryWindow()
        self._ask_again_at = 0.0

    async def close(self) -> None:
        await self._redis.aclose()

    async def admit(self, key: str, limit: int) -> Standing:
        return await self._count(key, limit, cost=1)

    async def look(self, key: str, limit: int) -> Standing:
        return await self._count(key, limit, cost=0)

    async def _count(self, key: str, limit: int, cost: int) -> Standing:
        if time.monotonic() >= self._ask_again_at:
            try:
                admitted, used, frees_in_us = await self._script(
                    keys=[f"tickwire:window:{key}"], args=[limit, cost]
                )
            except (RedisError, OSError) as error:
                logger.warning("Redis does not answer, limits are counted per process: %s", error)
                self._ask_again_at = time.monotonic() + self.PATIENCE_S
            else:
                return Standing(bool(admitted), limit, used, frees_in_us / 1e6)
        fallbacks.inc()
        return self._alone.count(key, limit, cost)
