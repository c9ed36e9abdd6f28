"""The same window over Redis, for several processes: one script on Redis' own clock."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from prometheus_client import Counter

from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import key_of
from core.redis.script_calls import Outcome, ScriptCalls

from .window import MemoryWindow, Standing, Then

logger = logging.getLogger(__name__)
redis_away = LastingFault(logger, "Redis is away or full, limits are counted per process")
limit_fallbacks = Counter(
    "tickwire_limit_fallbacks", "Requests counted per process because Redis did not answer.", registry=None
)
SCRIPT = (Path(__file__).parent / "window.lua").read_text()


class WindowQuestion(NamedTuple):
    """A request that waits for its standing; at cost 0 it only reads it."""

    key: str
    limit: int
    cost: int
    then: Then


class WindowRun:
    """Questions that differ only in who asks: one step of the script answers them, one after the other."""

    __slots__ = ("asking", "cost", "key", "limit")

    def __init__(self, key: str, limit: int, cost: int) -> None:
        self.key, self.limit, self.cost = key, limit, cost
        self.asking: list[Then] = []

    def standings(self, admitted: int, used: int, frees_in: float) -> Iterator[Standing]:
        """In the order of asking: the script admitted `admitted` of them, so that `used` slots are taken."""
        limit, count = self.limit, len(self.asking)
        if not self.cost:
            yield from [Standing(used < limit, limit, used, frees_in)] * count
            return
        # All at the same time, so the same slot frees next for all.
        for taken in range(used - admitted + 1, used + 1):
            yield Standing(True, limit, taken, frees_in)
        yield from [Standing(False, limit, used, frees_in)] * (count - admitted)


def fold(questions: Iterable[WindowQuestion]) -> list[WindowRun]:
    """Questions about one key keep their order; questions about other keys do not affect it."""
    runs: list[WindowRun] = []
    last: dict[str, WindowRun] = {}
    for key, limit, cost, then in questions:
        run = last.get(key)
        if run is None or run.limit != limit or run.cost != cost:
            run = last[key] = WindowRun(key, limit, cost)
            runs.append(run)
        run.asking.append(then)
    return runs


class RedisWindow(MemoryWindow):
    """Counts in Redis. While it does not answer, each process counts alone, including what Redis admitted
    through it, and a metric says so: P processes admit at most P times the limit until it is back, and the
    limit once more in a minute in which it comes back empty."""

    # The longest wait of a request for Redis. After a failure requests do not wait: Redis is tried at this
    # interval in the background until it answers.
    PATIENCE_S = patient(0.5)

    # Beyond that, later questions share the next call: the slower Redis is, the more share one.
    MOST_CALLS = 4

    def __init__(self, url: str) -> None:
        super().__init__()
        self._root = key_of("window:")
        self.calls = ScriptCalls(url, SCRIPT, lambda: self.PATIENCE_S)
        self._questions: list[WindowQuestion] = []
        self._is_due = False
        """The questions are asked at the end of this turn of the loop."""
        self._is_away = self._is_trying = False
        self._try_again_at = 0.0

    async def close(self) -> None:
        self._is_away, self._try_again_at = True, math.inf
        await self.calls.close()
        self._ask_all()

    async def ask(self, key: str, limit: int, cost: int) -> Standing:
        standing: asyncio.Future[Standing] = asyncio.get_running_loop().create_future()
        self._put(WindowQuestion(key, limit, cost, partial(settle, standing)))
        return await standing

    def admit_now(self, key: str, limit: int) -> Standing | None:
        return None

    def admit_later(self, key: str, limit: int, then: Then) -> None:
        self._put(WindowQuestion(key, limit, 1, then))

    def _put(self, question: WindowQuestion) -> None:
        self._questions.append(question)
        if not self._is_due:
            self._ask_soon()

    def _ask_soon(self) -> None:
        self._is_due = True
        asyncio.get_running_loop().call_soon(self._ask_all, context=self.calls.context)

    def _ask_all(self) -> None:
        """All questions of one turn, in one call."""
        self._is_due = False
        if not self._is_away and not self.calls.has_room(self.MOST_CALLS):
            return
        questions, self._questions = self._questions, []
        if self._is_away:
            self._answer_alone(fold(questions))
            self._try_again()
        elif questions:
            runs = fold(questions)
            numbers = [number for run in runs for number in (run.limit, len(run.asking) * run.cost)]
            self.calls.call([self._root + run.key for run in runs], numbers, partial(self._hear, runs))

    def _try_again(self) -> None:
        if not self._is_trying and time.monotonic() >= self._try_again_at:
            self._is_trying = True
            self.calls.call([], [], partial(self._hear, []))

    def _hear(self, runs: list[WindowRun], outcome: Outcome) -> None:
        self._is_trying = False
        if isinstance(outcome, Exception):
            redis_away.tell(outcome)
            self._is_away = True
            self._try_again_at = max(self._try_again_at, time.monotonic() + self.PATIENCE_S)
            self._answer_alone(runs)
        else:
            self._is_away = False
            redis_away.over()
            self._answer(runs, outcome)
        # Earlier questions may have failed too, and are answered first.
        if self._questions and not self._is_due:
            self._ask_soon()

    def _answer(self, runs: list[WindowRun], flat: list[int]) -> None:
        for run, admitted, used, frees_in_us in zip(runs, flat[::3], flat[1::3], flat[2::3], strict=True):
            if admitted:
                self.note(run.key, run.limit, admitted)
            for then, standing in zip(
                run.asking, run.standings(admitted, used, frees_in_us / 1e6), strict=True
            ):
                tell(then, standing)

    def _answer_alone(self, runs: list[WindowRun]) -> None:
        for run in runs:
            limit_fallbacks.inc(len(run.asking))
            for then in run.asking:
                tell(then, self.count(run.key, run.limit, run.cost))


def settle(standing: asyncio.Future[Standing], found: Standing) -> None:
    # The caller may have given up.
    if not standing.done():
        standing.set_result(found)


def tell(then: Callable[[Standing], object], standing: Standing) -> None:
    try:
        then(standing)
    except Exception:  # noqa: BLE001 - one that breaks must not keep the others from their answers
        logger.exception("A request's standing could not be delivered.")
