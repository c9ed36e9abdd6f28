"""Slots over Redis, for several processes: one script, and one call at a time for all who ask."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from prometheus_client import Counter
from redis.asyncio import Redis
from redis.exceptions import RedisError

from .slot_names import name_of, number_of, read
from .slot_nudges import hear_nudges
from .slots import Code, MemorySlots, OpenStream, Refusal, Slot
from .tasks import end
from .troubles import Trouble

logger = logging.getLogger(__name__)
redis_away = Trouble(logger, "Redis does not answer, streams are counted per process")
fallbacks = Counter("tickwire_stream_fallbacks", "Streams counted per process because Redis did not answer.")

SCRIPT = (Path(__file__).parent / "slots.lua").read_text()
# Redis serves nobody else while the script runs.
MOST_AT_ONCE = 500
Ended = tuple[str, Code]


class Question(NamedTuple):
    asks: tuple[Any, ...]
    answer: Callable[[Any], None]
    """Called with None where Redis did not answer."""


class SharedSlots:
    """Counts in Redis; while it does not answer, each process counts alone and a metric says so."""

    # Nobody waits longer for Redis than this. After a failure nobody waits at all, until a beat gets through.
    PATIENCE_S = 0.5
    BEAT_EVERY_S = 1.0

    def __init__(self, url: str, here: MemorySlots) -> None:
        self._here = here
        self._process = uuid.uuid4().hex
        self._redis = Redis.from_url(url)
        self._script = self._redis.register_script(SCRIPT)
        self._questions: deque[Question] = deque()
        self._heard: list[str] = []
        self._wake = asyncio.Event()
        self._next_beat_at = 0.0
        self._is_away = self._must_tell = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self._turn()
        self._tasks = [
            asyncio.create_task(self._keep_asking(), name="stream slots"),
            asyncio.create_task(
                hear_nudges(self._redis, f"tickwire:streams:ends:{self._process}", self._wake.set),
                name="stream slot nudges",
            ),
        ]

    async def stop(self) -> None:
        await end(*self._tasks)
        self._is_away = True
        self._give_up(list(self._questions))
        with contextlib.suppress(RedisError, OSError):
            await self._call([("leave",)])
        await self._redis.aclose()

    async def claim(self, slot: Slot, *, takeover: bool) -> Refusal | None:
        asked: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()

        # At once and not when the waiting task gets its turn: a beat compares what is here with Redis.
        def settle(answer: Any) -> None:
            if asked.cancelled():
                self._leave(slot)
            elif answer is None:
                fallbacks.inc()
                asked.set_result(self._here.claim(slot, takeover=takeover))
            elif answer[0]:
                slot.order = answer[1]
                self._here.put(slot)
                asked.set_result(None)
            else:
                asked.set_result(Refusal(slot.limit, answer[1]))

        self._ask(
            ("claim", name_of(slot, self._process), slot.stream.account_id, slot.limit, takeover), settle
        )
        return await asked

    def release(self, slot: Slot) -> None:
        if self._here.remove(slot.number) is not None:
            self._leave(slot)

    async def enforce(self, account_id: int, limit: int) -> None:
        if await self._ask_and_wait("enforce", account_id, limit) is None:
            self._here.enforce(account_id, limit)

    async def of(self, account_id: int) -> list[OpenStream] | None:
        """None while Redis does not answer."""
        names = await self._ask_and_wait("of", account_id)
        return None if names is None else [read(name, account_id) for name in names]

    async def count(self) -> int | None:
        count: int | None = await self._ask_and_wait("count")
        return count

    def _leave(self, slot: Slot) -> None:
        self._ask(("release", name_of(slot, self._process), slot.stream.account_id), lambda answer: None)

    async def _ask_and_wait(self, *asks: Any) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(answer: Any) -> None:
            if not answered.cancelled():
                answered.set_result(answer)

        self._ask(asks, settle)
        return await answered

    def _ask(self, asks: tuple[Any, ...], answer: Callable[[Any], None]) -> None:
        if self._is_away:
            answer(None)
        else:
            self._questions.append(Question(asks, answer))
            self._wake.set()

    async def _keep_asking(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_beat_at):
                    await self._wake.wait()
            self._wake.clear()
            if self._is_away and loop.time() < self._next_beat_at:
                continue
            try:
                await self._turn()
            except Exception:  # noqa: BLE001 - the top of the task: whoever claims would wait for ever
                logger.exception("The slots of streams could not be asked for, trying again")

    async def _turn(self) -> None:
        """One call: what was asked meanwhile in its order, around it what keeps Redis and us of one mind."""
        asked = [self._questions.popleft() for _ in range(min(MOST_AT_ONCE, len(self._questions)))]
        first = [("tell", self._told())] if self._must_tell else []
        now = asyncio.get_running_loop().time()
        last = [("beat",)] if now >= self._next_beat_at else []
        if last:
            self._next_beat_at = now + self.BEAT_EVERY_S
        answers: list[Any] | None = None
        try:
            answers, ended = await self._call([*first, *(question.asks for question in asked), *last])
        except (RedisError, OSError) as error:
            redis_away.tell(error)
        finally:
            if answers is None:
                # It may have done what we asked and not said so.
                self._is_away = self._must_tell = True
                self._give_up(asked + list(self._questions))
        if answers is not None:
            self._is_away = self._must_tell = False
            redis_away.over()
            self._take(asked, answers[len(first) :], ended)

    def _take(self, asked: list[Question], answers: list[Any], ended: list[Ended]) -> None:
        for question, answer in zip(asked, answers, strict=False):
            question.answer(answer)
        for name, code in ended:
            self._here.end(number_of(name), code)
        self._heard = [name for name, _ in ended]
        if len(answers) > len(asked):
            leaving = sum(question.asks[0] == "release" for question in self._questions)
            self._must_tell = answers[-1] != len(self._here) + leaving
        if self._questions or self._must_tell:
            self._wake.set()

    def _give_up(self, questions: list[Question]) -> None:
        self._questions.clear()
        for question in questions:
            question.answer(None)

    async def _call(self, asks: list[tuple[Any, ...]]) -> tuple[list[Any], list[Ended]]:
        packed = [msgspec.msgpack.encode(part) for part in (self._heard, asks)]
        # Around the whole of it: timeouts of the socket hold for connecting and for each read anew.
        async with asyncio.timeout(self.PATIENCE_S):
            answered = await self._script(args=[self._process, *packed])
        return msgspec.msgpack.decode(answered, type=tuple[list[Any], list[Ended]])

    def _told(self) -> list[tuple[str, int, int, int]]:
        slots = sorted(self._here.all(), key=lambda slot: slot.order)
        return [
            (name_of(slot, self._process), slot.stream.account_id, slot.limit, slot.order) for slot in slots
        ]
