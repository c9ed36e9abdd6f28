"""Makes an analysis once for all who ask at the same time, keeps it for a while, and charges the one whose
request began it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

from accounts.keys import Caller
from accounts.limits import AiCallReservation, AiCallStanding, Whose
from core.background import cancel_and_wait, retrieve
from core.clock import now_ms
from core.contract.errors import AiQuotaExceeded, ModelUnavailable
from core.database import UNANSWERED
from core.deadlines import patient
from core.fault_log import LastingFault
from core.plain_json import encode
from core.redis.connections import connect_shared, key_of
from core.threads import in_thread_promptly
from instruments.facts import InstrumentFacts
from market.runtime import prices
from news.language import LanguageFailed

from . import analysts
from .analysts import Analyst
from .reading import flows, read_facts

# The answers of the last five minutes, in this process and, through Redis, in all others.
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
        self._redis = connect_shared()

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


# Charges an analysis to the caller's allowance of AI calls, even if the database answers too late.
class AiCallCharge:
    """The caller of one request, and what is left of the AI calls."""

    def __init__(self, caller: Caller, standing: AiCallStanding) -> None:
        self.standing = standing
        self._caller = caller

    @classmethod
    async def of(cls, caller: Caller) -> AiCallCharge:
        return cls(
            caller, await in_thread_promptly(AiCallStanding.of, *_allowance(caller), datetime.now(UTC))
        )

    @property
    def has_none_left(self) -> bool:
        return not self.standing.remaining

    def refusal(self) -> AiQuotaExceeded:
        return self.standing.refusal(self._caller.allowances.tier, datetime.now(UTC))

    @contextlib.asynccontextmanager
    async def reserved(self) -> AsyncIterator[None]:
        """The call is counted in advance, so that neither crashes nor crowds get more than the day allows."""
        now = datetime.now(UTC)
        reservation = await self._reserve(now)
        if reservation is None:
            self.standing = await in_thread_promptly(AiCallStanding.of, *_allowance(self._caller), now)
            raise self.refusal()
        self.standing = reservation.standing
        try:
            yield
        except BaseException:
            await self._take_back(reservation)
            raise

    async def _reserve(self, now: datetime) -> AiCallReservation | None:
        reserving = CancellableReservation(*_allowance(self._caller), now)
        try:
            return await in_thread_promptly(reserving.run)
        except BaseException:
            made = reserving.give_up()
            if made is not None:
                await self._take_back(made)
            raise

    async def _take_back(self, reservation: AiCallReservation) -> None:
        try:
            self.standing = await in_thread_promptly(reservation.give_back)
        except UNANSWERED as error:
            logger.error("%s may have lost an AI call: %s", reservation.whose, error)


def _allowance(caller: Caller) -> tuple[Whose, int]:
    return caller.ai_calls_of, caller.allowances.ai_calls


class CancellableReservation:
    def __init__(self, whose: Whose, limit: int, now: datetime) -> None:
        self._asked = whose, limit, now
        self._lock = threading.Lock()
        self._made: AiCallReservation | None = None
        self._is_given_up = False

    def run(self) -> AiCallReservation | None:
        """Runs in a thread."""
        reservation = AiCallReservation.make(*self._asked)
        with self._lock:
            if not self._is_given_up:
                self._made = reservation
                return reservation
        if reservation is not None:
            reservation.give_back()
        return None

    def give_up(self) -> AiCallReservation | None:
        """Returns what has been counted already; a call that is counted later is given back at once."""
        with self._lock:
            self._is_given_up = True
            return self._made


RETRY_AFTER_S = 30


class Answered(NamedTuple):
    fields: bytes
    """The JSON of the answer, without its braces."""
    was_made_before: bool


class Analyses:
    """The analyses of one process, which shares its answers with the others over Redis."""

    def __init__(self, answers: AnswerCache | None = None) -> None:
        self._answers = answers or AnswerCache()
        self._under_way: dict[AnswerKey, asyncio.Task[Answered]] = {}

    async def start(self) -> None:
        await self._answers.start()

    async def stop(self) -> None:
        await cancel_and_wait(*self._under_way.values())
        self._under_way.clear()
        await self._answers.stop()
        flows.clear()

    async def answer(self, instrument: InstrumentFacts, model: str | None, charge: AiCallCharge) -> Answered:
        """Asks the named model, or else the best one that answers."""
        analyst = analysts.preferred() if model is None else analysts.named(model)
        try:
            return await self.answer_by(analyst, instrument, charge)
        except LanguageFailed as failure:
            logger.warning("%s made no analysis of %s: %s", analyst.identifier, instrument.symbol, failure)
            if model is not None:
                raise unavailable(analyst, failure) from None
        return await self.answer_by(analysts.built_in_analyst, instrument, charge)

    async def answer_by(
        self, analyst: Analyst, instrument: InstrumentFacts, charge: AiCallCharge
    ) -> Answered:
        while True:
            simulated = prices.candles(instrument).simulated
            key = AnswerKey(instrument.symbol, analyst.identifier, simulated)
            entry = await self._answers.get(key, now_ms())
            if entry is not None:
                return Answered(entry.fields, was_made_before=True)
            making = self._under_way.get(key)
            if making is None:
                return await asyncio.shield(self._begin(key, analyst, instrument, charge))
            try:
                return (await asyncio.shield(making))._replace(was_made_before=True)
            except AiQuotaExceeded:
                # The caller who began it had no calls left, but this one may.
                continue

    def _begin(
        self, key: AnswerKey, analyst: Analyst, instrument: InstrumentFacts, charge: AiCallCharge
    ) -> asyncio.Task[Answered]:
        """Runs as a separate task, because others may wait for it after its first caller has gone."""
        making = asyncio.create_task(self._make(key, analyst, instrument, charge), name=f"analysis {key}")
        self._under_way[key] = making
        making.add_done_callback(lambda _: self._under_way.pop(key))
        # All waiting callers may have gone.
        making.add_done_callback(retrieve)
        return making

    async def _make(
        self, key: AnswerKey, analyst: Analyst, instrument: InstrumentFacts, charge: AiCallCharge
    ) -> Answered:
        async with self._answers.turn(key, analyst.patience_s):
            entry = await self._answers.get(key, now_ms())
            if entry is not None:
                return Answered(entry.fields, was_made_before=True)
            async with charge.reserved():
                facts = await read_facts(instrument, now_ms())
                fields = encode(await analyst.analyse(facts))[1:-1]
            await self._answers.put(key, CachedAnswer(facts.at_ms, fields))
            return Answered(fields, was_made_before=False)


def unavailable(analyst: Analyst, failure: LanguageFailed) -> ModelUnavailable:
    wait_s = int(failure.wait_s) + 1 if failure.wait_s else RETRY_AFTER_S
    return ModelUnavailable(
        f"{analyst.identifier} is not responding at the moment, and nothing was counted. "
        f"Try again in {wait_s} s, or ask {analysts.built_in_analyst.identifier}, which always answers.",
        retry_after=wait_s,
    )


analyses = Analyses()
