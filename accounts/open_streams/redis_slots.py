"""Slots in Redis, shared by several processes: one script, one call at a time for all callers, restoring what
Redis lost, and spreading streams evenly."""

import asyncio
import contextlib
import itertools
import logging
import random
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from prometheus_client import Counter
from redis.exceptions import RedisError

from core.background import BackgroundLoop, TimeoutInSlices
from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, key_of

from .stream_slots import EndCode, MemorySlots, SharedDetails, Slot, SlotRefusal, slot_name, slot_number

# Keeps Redis and this process in agreement: sends it our slots in pieces, so that no caller waits long.
Ask = tuple[Any, ...]
PIECE = 50
START, DONE = "0", ""


class SlotSync:
    """First sends all of ours, oldest first; then removes from Redis what we do not have. Each step may be
    repeated, so it continues after a failed call."""

    def __init__(self, process: str, here: MemorySlots) -> None:
        self._process, self._here = process, here
        self._unsent = {slot.number: slot for slot in sorted(here.all(), key=lambda slot: slot.order)}
        self._asked: list[Slot] = []
        self._asks: list[Ask] = []
        self._looks_from = START
        """Where the comparison with what Redis has goes on; DONE once it has seen all."""
        self._strange: list[Any] = []
        """Name, caller, name, caller, … of what Redis has and we do not."""

    def add(self, slot: Slot) -> None:
        """A slot that was counted in this process alone."""
        self._unsent[slot.number] = slot

    def asks(self, callers: Collection[str | None], *, is_due: bool) -> list[Ask]:
        """The calls to make before questions about these callers, because a claim must find our slots."""
        self._asked, self._asks = self._of_callers(callers), []
        if is_due:
            room = max(0, PIECE - len(self._asked))
            self._asked += self._take(itertools.islice(list(self._unsent.values()), room))
        if self._asked:
            described = [
                (slot_name(slot, self._process), slot.stream.counted_under, slot.limit, slot.order)
                for slot in self._asked
            ]
            self._asks.append(("tell", described))
        elif is_due:
            self._asks += self._next_look()
        return self._asks

    def failed(self) -> None:
        """An unknown part of it arrived, so the scan of what Redis has starts from the beginning."""
        self._unsent = {slot.number: slot for slot in self._asked} | self._unsent
        self._asked, self._strange, self._looks_from = [], [], START

    def heard(self, answers: list[Any]) -> bool:
        """Whether Redis has everything."""
        asks, self._asked, self._asks = self._asks, [], []
        for ask, answer in zip(asks, answers, strict=True):
            if ask[0] == "known":
                next_from, held = answer
                self._looks_from = DONE if next_from == START else next_from
                for name, caller in zip(held[::2], held[1::2], strict=True):
                    if slot_number(name) not in self._here:
                        self._strange += name, caller
        return any(ask[0] == "complete" for ask in asks) and not self._unsent

    def _next_look(self) -> list[Ask]:
        strange, self._strange = self._strange, []
        drops: list[Ask] = [("drop", strange)] if strange else []
        return [*drops, ("complete",) if self._looks_from == DONE else ("known", self._looks_from)]

    def _of_callers(self, callers: Collection[str | None]) -> list[Slot]:
        found = (slot for caller in callers if caller is not None for slot in self._here.of(caller))
        return self._take(slot for slot in found if slot.number in self._unsent)

    def _take(self, slots: Iterable[Slot]) -> list[Slot]:
        """The slots that have not ended since."""
        taken = list(slots)
        for slot in taken:
            self._unsent.pop(slot.number)
        return [slot for slot in taken if slot.number in self._here]


# Whether this process has far more streams than another, as after a restart of that one, and some of its
# clients should reconnect.
logger = logging.getLogger(__name__)
TIMES, MORE = 2, 50
FOR_S, A_LOOK = 60.0, 5
# Clients may come back here, however often they are asked to reconnect.
HELPED, REST_S = 0.9, 3600.0

# While Redis is away the other processes are unknown, and when it comes back it may be empty.
UNSEEN_S = 10.0


class Spread:
    """Asked once a second."""

    def __init__(self) -> None:
        self._looked_at = self._uneven_at = self._rests_until = float("-inf")
        self._due_at: float | None = None
        self._left = 0
        """How many may still be disconnected."""
        self._before = float("inf")
        """The surplus when clients were last disconnected."""

    def surplus(self, here: int, able: int, others: Sequence[int], now: float) -> int:
        """How many clients to disconnect now, of those that are `able` to continue elsewhere."""
        if now - self._looked_at > UNSEEN_S:
            self._due_at, self._left = None, 0
        self._looked_at = now
        least, mean = min(others, default=here), -(-(here + sum(others)) // (1 + len(others)))
        too_many = max(0, here - mean)
        self._left = min(self._left, too_many)
        is_even = here <= TIMES * least or here - least <= MORE
        if not is_even:
            self._uneven_at = now
        elif now - self._uneven_at >= FOR_S:
            # Sooner, those clients may still be on their way back.
            self._before = float("inf")
        if is_even or now < self._rests_until:
            self._due_at = None
        elif self._due_at is None or self._left:
            self._due_at = now + FOR_S
        elif now >= self._due_at:
            self._begin(too_many, able, now)
        asked = min(A_LOOK, self._left)
        self._left -= asked
        return asked

    def _begin(self, too_many: int, able: int, now: float) -> None:
        if too_many > HELPED * self._before:
            self._rests_until, self._before = now + REST_S, float("inf")
            return
        self._left, self._before = min(too_many, able), too_many
        self._due_at = now + FOR_S
        text = "This process has %d streams too many: clients that can go on elsewhere are asked to reconnect"
        logger.info(text, too_many)


AWAY = (RedisError, OSError)
redis_away = LastingFault(logger, "Redis is away or full, streams are counted per process")
stream_fallbacks = Counter(
    "tickwire_stream_fallbacks", "Streams counted per process because Redis did not answer.", registry=None
)
SCRIPT = (Path(__file__).parent / "slots.lua").read_text()

# Redis serves no other client while the script runs.
MOST_AT_ONCE = 200

# After a piece, the process pauses for this many times as long as it took.
BREATH = 9.0
TELL_FIRST = [2]
HEAR_AGAIN_S = 1.0
CALLER_AT = {"claim": 2, "enforce": 1, "of": 1}


def pause_after(took_s: float) -> float:
    """Many processes may have as much to send: the busier Redis is, the longer each waits, with a random
    part."""
    return took_s * BREATH * random.uniform(0.5, 1.5)  # noqa: S311


class SlotQuestion(NamedTuple):
    asks: Ask
    answer: Callable[[Any], None]
    """Called with None if Redis did not answer, or is no longer asked."""

    @property
    def caller(self) -> str | None:
        """Whose slots it is about."""
        return self.asks[CALLER_AT[self.asks[0]]] if self.asks[0] in CALLER_AT else None


class SlotAnswers(NamedTuple):
    answers: list[Any]
    ended: list[tuple[str, EndCode]]
    was_known: bool


class RedisSlots:
    """Counts in Redis. While it does not answer, each process counts alone, and a metric says so."""

    # The longest wait for Redis. After a failure callers do not wait at all, until a beat gets through.
    PATIENCE_S = patient(0.5)
    BEAT_EVERY_S = 1.0

    def __init__(self, url: str, here: MemorySlots) -> None:
        self._here = here
        self._process = uuid.uuid4().hex
        self._root = key_of("streams:")
        self._redis = connect_redis(url)
        self._script = self._redis.register_script(SCRIPT)
        self.details = SharedDetails(self._redis, self._root, self._process, here)
        self._questions: deque[SlotQuestion] = deque()
        self._heard: list[str] = []
        self._wake = asyncio.Event()
        self._next_beat_at = 0.0
        self._is_away = self._may_bury = self._is_handed_over = False
        self._spread = Spread()
        self._telling: SlotSync | None = None
        """What Redis does not yet know of our slots."""
        self._next_piece_at = 0.0
        self._loops = (
            BackgroundLoop(
                "stream slots",
                self._turn,
                fault=redis_away,
                broke="The slots of streams could not be asked for, trying again",
                passing=AWAY,
                before=self._until_due,
            ),
            BackgroundLoop(
                "stream slot nudges",
                self._hear_nudges,
                fault=LastingFault(logger, "No nudges about ended streams", logging.INFO),
                broke="Nudges about ended streams could not be heard, trying again",
                passing=AWAY,
                after=HEAR_AGAIN_S,
            ),
        )

    async def start(self) -> None:
        try:
            await self._turn()
        except AWAY as error:
            redis_away.tell(error)
        else:
            # There is nothing to tell yet.
            self._telling = None
        for loop in (*self._loops, self.details.loop):
            await loop.start()

    async def hand_over(self) -> None:
        """Give all slots away, because their sockets are about to be closed: a client that comes back on
        another process finds a place. Until they are closed, a caller may have as many more open as it has
        here."""
        self._is_handed_over = True
        await self.details.stop()
        for loop in self._loops:
            await loop.stop()
        self._is_away = True
        self._give_up()
        with contextlib.suppress(*AWAY):
            while (await self.call([("leave",)])).answers[0]:
                pass

    async def stop(self) -> None:
        if not self._is_handed_over:
            await self.hand_over()
        await self._redis.aclose()

    async def claim(self, slot: Slot, *, takeover: bool) -> SlotRefusal | None:
        asked: asyncio.Future[SlotRefusal | None] = asyncio.get_running_loop().create_future()

        # At once, not in the waiting task, because a beat compares our slots with Redis.
        def settle(answer: Any) -> None:
            if asked.cancelled():
                self._leave(slot)
            elif answer is None:
                if not self._is_handed_over:
                    stream_fallbacks.inc()
                refusal = self._here.claim(slot, takeover=takeover)
                if refusal is None and self._telling is not None:
                    self._telling.add(slot)
                asked.set_result(refusal)
            elif answer[0]:
                slot.order = answer[1]
                self._here.put(slot)
                asked.set_result(None)
            else:
                asked.set_result(SlotRefusal(slot.limit, answer[1]))

        name = slot_name(slot, self._process)
        self._put(("claim", name, slot.stream.counted_under, slot.limit, takeover), settle)
        return await asked

    def release(self, slot: Slot) -> None:
        self.details.forget(slot.number)
        if self._here.remove(slot.number) is not None:
            self._leave(slot)

    def _leave(self, slot: Slot) -> None:
        self._put(("release", slot_name(slot, self._process), slot.stream.counted_under), lambda answer: None)

    async def ask(self, *asks: Any) -> Any:
        """What the script answers, or None while Redis does not."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(answer: Any) -> None:
            if not answered.cancelled():
                answered.set_result(answer)

        self._put(asks, settle)
        return await answered

    def _put(self, asks: tuple[Any, ...], answer: Callable[[Any], None]) -> None:
        if self._is_away:
            answer(None)
        else:
            self._questions.append(SlotQuestion(asks, answer))
            self._wake.set()

    async def _until_due(self) -> None:
        """Wait for the next call: until a caller asks, unless Redis is away."""
        is_due = False
        while not is_due:
            has_more = self._telling is not None or self._may_bury
            next_at = min(self._next_beat_at, self._next_piece_at) if has_more else self._next_beat_at
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await self._wake.wait()
            self._wake.clear()
            is_due = not self._is_away or asyncio.get_running_loop().time() >= self._next_beat_at

    async def _turn(self) -> None:
        """One call: the questions in order, with what keeps Redis and this process consistent."""
        asked = [self._questions.popleft() for _ in range(min(MOST_AT_ONCE, len(self._questions)))]
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        first, last = self._before(asked, began_at), self._after(began_at)
        try:
            answered = await self.call([*first, *(question.asks for question in asked), *last])
        except BaseException:
            # Redis may have executed the call, and only its answer is lost.
            self._is_away = True
            self._telling = self._telling or SlotSync(self._process, self._here)
            self._telling.failed()
            self._give_up(asked)
            raise
        took_s = loop.time() - began_at
        self._next_piece_at = began_at + took_s + pause_after(took_s)
        self._is_away = False
        self._take(asked, first, answered)

    def _before(self, asked: list[SlotQuestion], now: float) -> list[Ask]:
        if self._telling is None:
            return []
        callers = {question.caller for question in asked}
        return self._telling.asks(callers, is_due=now >= self._next_piece_at)

    def _after(self, now: float) -> list[Ask]:
        if now >= self._next_beat_at:
            self._next_beat_at = now + self.BEAT_EVERY_S
            return [("beat",)]
        return [("bury",)] if self._may_bury and now >= self._next_piece_at else []

    def _take(self, asked: list[SlotQuestion], first: list[Ask], answered: SlotAnswers) -> None:
        answers = answered.answers
        sync_answers, rest = answers[: len(first)], answers[len(first) + len(asked) :]
        again: list[SlotQuestion] = []
        for question, answer in zip(asked, answers[len(first) :], strict=False):
            if question.asks[0] == "claim" and answer == TELL_FIRST:
                again.append(question)
            else:
                question.answer(answer)
        for name, code in answered.ended:
            self._here.end(slot_number(name), code)
        self._heard = [name for name, _ in answered.ended]
        if self._telling is not None and self._telling.heard(sync_answers):
            self._telling = None
        if not answered.was_known:
            self._telling = SlotSync(self._process, self._here)
        if rest:
            self._compare(rest[0])
        if again or self._questions:
            self._questions.extendleft(reversed(again))
            self._wake.set()

    def _compare(self, answer: Any) -> None:
        """Compares our slots in Redis, as a beat reports them, with those here."""
        if isinstance(answer, int):
            self._may_bury = bool(answer)
            return
        has, self._may_bury, others = answer
        leaving = sum(question.asks[0] == "release" for question in self._questions)
        # While our slots are being sent the numbers differ, and -1 means only that.
        if self._telling is None and has != len(self._here) + leaving:
            self._telling = SlotSync(self._process, self._here)
        self._even_out(others)

    def _even_out(self, others: list[int]) -> None:
        """The oldest go first, so that a client that comes back here is not asked again."""
        able = [slot for slot in self._here.all() if slot.goes_on]
        now = asyncio.get_running_loop().time()
        for slot in able[: self._spread.surplus(len(self._here), len(able), others, now)]:
            self.release(slot)
            slot.end("restarting")

    def _give_up(self, asked: Sequence[SlotQuestion] = ()) -> None:
        """Answer these questions, and those that still wait, without Redis."""
        questions = [*asked, *self._questions]
        self._questions.clear()
        for question in questions:
            question.answer(None)

    async def _hear_nudges(self) -> None:
        """Wake the loop when streams of ours were ended. Each beat looks too: a lost nudge costs a second."""
        async with self._redis.pubsub() as nudges:
            await nudges.subscribe(f"{self._root}ends:{self._process}")
            async for _ in nudges.listen():
                self._wake.set()

    async def call(self, asks: list[Ask]) -> SlotAnswers:
        packed = [msgspec.msgpack.encode(part) for part in (self._heard, asks)]
        # A socket's own timeouts apply to connecting and to each read separately.
        async with TimeoutInSlices(self.PATIENCE_S):
            answered = await self._script(keys=[self._root], args=[self._process, *packed])
        return msgspec.msgpack.decode(answered, type=SlotAnswers)
