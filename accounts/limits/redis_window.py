"""The same window over Redis, for several processes: one script on Redis' own clock."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from prometheus_client import Counter
from redis.exceptions import RedisError

from core.background import TimeoutInSlices, cancel_and_wait
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, key_of

from .window import MemoryWindow, Standing

logger = logging.getLogger(__name__)
redis_away = LastingFault(logger, "Redis does not answer, limits are counted per process")
limit_fallbacks = Counter(
    "tickwire_limit_fallbacks", "Requests counted per process because Redis did not answer.", registry=None
)

# For each key a list of microsecond stamps, oldest first. Stamps from the future (Redis' clock was set
# back) go too: that over-admits once, where keeping them would lock the account out for as long as the step.
SCRIPT = """
local time = redis.call('TIME')
local now, window = time[1] * 1000000 + time[2], 60000000
local answers = {}
for index, key in ipairs(KEYS) do
  local limit, cost = tonumber(ARGV[2 * index - 1]), tonumber(ARGV[2 * index])
  local function at(place)
    local stamp = redis.call('LINDEX', key, place)
    return stamp and tonumber(stamp)
  end
  while (at(0) or now) <= now - window do redis.call('LPOP', key) end
  while (at(-1) or now) > now do redis.call('RPOP', key) end
  local used = redis.call('LLEN', key)
  local admitted = used < limit and 1 or 0
  if admitted == 1 and cost == 1 then
    redis.call('RPUSH', key, string.format('%.0f', now))
    redis.call('PEXPIRE', key, 61000)
    used = used + 1
  end
  local leaver = at(math.max(0, used - limit))
  answers[#answers + 1] = admitted
  answers[#answers + 1] = used
  answers[#answers + 1] = leaver and leaver + window - now or 0
end
return answers
"""


class WindowQuestion(NamedTuple):
    """A request that waits for its standing; None where Redis did not answer."""

    key: str
    limit: int
    cost: int
    standing: asyncio.Future[Standing | None]

    def answer(self, standing: Standing | None) -> None:
        if not self.standing.done():
            self.standing.set_result(standing)


class RedisWindow(MemoryWindow):
    """Counts in Redis; while it does not answer, each process counts alone, together with what Redis admitted
    through it, and a metric says so: P processes admit P times the limit at most until it is back, and the
    limit once more in a minute in which it comes back without what it knew."""

    # A request never waits longer for Redis than this. After a failure none waits at all: Redis is tried
    # as often as this beside them, until it answers.
    PATIENCE_S = 0.5

    def __init__(self, url: str) -> None:
        super().__init__()
        self._root = key_of("window:")
        self._redis = connect_redis(url)
        self._script = self._redis.register_script(SCRIPT)
        self._is_away = False
        self._try_again_at = 0.0
        self._questions: list[WindowQuestion] = []
        self._asking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        await cancel_and_wait(self._asking)
        # A task that is cancelled before its first step never reaches its `finally`.
        self._leave()
        await self._redis.aclose()

    async def ask(self, key: str, limit: int, cost: int) -> Standing:
        if self._is_away:
            if time.monotonic() >= self._try_again_at:
                self._start_asking()
        else:
            question = WindowQuestion(key, limit, cost, asyncio.get_running_loop().create_future())
            self._questions.append(question)
            self._start_asking()
            standing = await question.standing
            if standing is not None:
                return standing
        limit_fallbacks.inc()
        return self.count(key, limit, cost)

    def admit_now(self, key: str, limit: int) -> Standing | None:
        return None

    def admit_later(self, key: str, limit: int, then: Callable[[Standing], None]) -> None:
        asking = asyncio.ensure_future(self.ask(key, limit, cost=1))
        asking.add_done_callback(lambda asked: then(asked.result()))

    def _start_asking(self) -> None:
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="shared limits")

    async def _ask(self) -> None:
        """One call at a time. Requests that come meanwhile share the next one, in their order."""
        asked: list[WindowQuestion] = []
        try:
            while self._questions or self._is_away:
                asked, self._questions = self._questions, []
                for question, standing in zip(asked, await self._call(asked), strict=True):
                    if question.cost and standing.admitted:
                        self.note(question.key, question.limit)
                    question.answer(standing)
                self._is_away = False
                redis_away.over()
        except (RedisError, OSError) as error:
            redis_away.tell(error)
            self._is_away, self._try_again_at = True, time.monotonic() + self.PATIENCE_S
        finally:
            self._asking = None
            self._leave(asked)

    def _leave(self, asked: Sequence[WindowQuestion] = ()) -> None:
        """Without an answer: these, and those that still wait."""
        waiting, self._questions = self._questions, []
        for question in (*asked, *waiting):
            question.answer(None)

    async def _call(self, asked: list[WindowQuestion]) -> list[Standing]:
        keys = [f"{self._root}{question.key}" for question in asked]
        args = [number for question in asked for number in (question.limit, question.cost)]
        # Around the whole of it: timeouts of the socket hold for connecting and for each read anew.
        async with TimeoutInSlices(self.PATIENCE_S):
            flat = await self._script(keys=keys, args=args)
        answers = zip(asked, flat[::3], flat[1::3], flat[2::3], strict=True)
        return [
            Standing(bool(admitted), question.limit, used, frees_in_us / 1e6)
            for question, admitted, used, frees_in_us in answers
        ]
