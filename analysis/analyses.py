"""Makes an analysis once for all who ask at the same time, and charges the one whose request began it."""

import asyncio
import logging
from typing import NamedTuple

from core.background import cancel_and_wait, retrieve
from core.clock import now_ms
from core.contract.errors import AiQuotaExceeded, ModelUnavailable
from core.plain_json import encode
from instruments.catalogue import InstrumentFacts
from market.runtime import prices
from news.language import LanguageFailed

from . import analysts
from .ai_call_charge import AiCallCharge
from .analysts import Analyst
from .answer_cache import AnswerCache, AnswerKey, CachedAnswer
from .reading import flows, read_facts

logger = logging.getLogger(__name__)
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
