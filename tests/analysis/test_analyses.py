"""One answer for all who ask at once; the one whose request made it pays, and nobody for a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from django.conf import settings

from accounts.keys.caller import Allowances, Caller
from accounts.limits.ai_calls import AiCallStanding
from accounts.models import Account, AiUsage
from analysis.ai_call_charge import AiCallCharge
from analysis.analyses import Analyses, Answered
from analysis.answer import Analysis
from analysis.answer_cache import AnswerCache, AnswerKey, CachedAnswer
from analysis.built_in import analyse
from analysis.facts import Facts
from core.contract.errors import AiQuotaExceeded
from core.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue
from market import runtime as market
from market.prices.history import History
from news.language import LanguageFailed
from tests.factories import NOON, make_account, make_instrument
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("transactional_db")
LIMIT = 3


class HeldAnalyst:
    """Answers when a test lets it, well or not."""

    identifier = "held-1"
    patience_s = PATIENCE_S

    def __init__(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.calls = 0
        self.fault: Exception | None = None

    def is_healthy(self) -> bool:
        return True

    async def analyse(self, facts: Facts) -> Analysis:
        self.calls += 1
        self.begun.set()
        await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return analyse(facts)


class CountedAnswers(AnswerCache):
    """Tells that so many have looked: each of them has then waits for one, or makes it."""

    def __init__(self) -> None:
        super().__init__()
        self._looks: asyncio.Queue[AnswerKey] = asyncio.Queue()

    async def get(self, key: AnswerKey, now_ms: int) -> CachedAnswer | None:
        entry = await super().get(key, now_ms)
        self._looks.put_nowait(key)
        return entry

    async def have_looked(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(number):
                await self._looks.get()


@pytest.fixture
def instrument() -> InstrumentFacts:
    return catalogue.get(make_instrument("EURUSD").symbol)


@pytest.fixture
def account() -> Account:
    return make_account()


@pytest.fixture
def stranger() -> Account:
    return make_account()


@pytest.fixture
async def answers() -> CountedAnswers:
    return CountedAnswers()


@pytest.fixture
async def analyses(transactional_db: None, answers: CountedAnswers) -> AsyncIterator[Analyses]:
    if settings.REDIS_URL:
        async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as client:
            await client.flushdb()
    running = Analyses(answers)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def analyst() -> HeldAnalyst:
    return HeldAnalyst()


def charge_of(account: Account, limit: int = LIMIT) -> AiCallCharge:
    allowances = Allowances(tier="free", requests=60, streams=2, ai_calls=limit)
    caller = Caller(account.pk, 1, "somebody", allowances, None, False, str(account.pk))
    return AiCallCharge(caller, AiCallStanding(NOON.date(), limit, 0))


async def used(account: Account) -> int:
    return sum(await in_thread(list, AiUsage.objects.filter(account=account).values_list("used", flat=True)))


def asked(
    analyses: Analyses, analyst: HeldAnalyst, instrument: InstrumentFacts, charges: list[AiCallCharge]
) -> list[asyncio.Task[Answered]]:
    return [asyncio.create_task(analyses.answer_by(analyst, instrument, each)) for each in charges]


async def test_all_who_ask_at_once_get_the_one_answer_and_one_pays(
    analyses: Analyses, analyst: HeldAnalyst, instrument: InstrumentFacts, account: Account
) -> None:
    tasks = asked(analyses, analyst, instrument, [charge_of(account) for _ in range(20)])
    analyst.go.set()

    answered = await asyncio.gather(*tasks)

    assert (analyst.calls, await used(account)) == (1, 1)
    assert len({each.fields for each in answered}) == 1
    assert [each.was_made_before for each in answered].count(False) == 1


def begin_series(instrument: InstrumentFacts, *, simulated: bool) -> None:
    history = History(instrument.digits)
    history.simulated = simulated
    market.prices.histories[instrument.symbol] = history


async def test_answer_over_simulated_prices_is_none_over_real_ones(
    analyses: Analyses, analyst: HeldAnalyst, instrument: InstrumentFacts, account: Account
) -> None:
    analyst.go.set()
    made_before = []
    for simulated in (True, True, False, False):
        begin_series(instrument, simulated=simulated)
        answered = await analyses.answer_by(analyst, instrument, charge_of(account))
        made_before.append(answered.was_made_before)
    market.prices.clear()

    assert made_before == [False, True, False, True]


async def test_failure_is_shared_and_costs_nothing(
    analyses: Analyses,
    answers: CountedAnswers,
    analyst: HeldAnalyst,
    instrument: InstrumentFacts,
    account: Account,
) -> None:
    analyst.fault = LanguageFailed("it is ill")
    mine = charge_of(account)
    tasks = asked(analyses, analyst, instrument, [mine, charge_of(account), charge_of(account)])
    await answers.have_looked(4)
    analyst.go.set()

    answered = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(each) for each in answered] == [LanguageFailed] * 3
    assert (analyst.calls, await used(account), mine.standing.remaining) == (1, 0, LIMIT)


async def test_fault_of_ours_costs_nothing_either(
    analyses: Analyses, analyst: HeldAnalyst, instrument: InstrumentFacts, account: Account
) -> None:
    analyst.fault = ZeroDivisionError()
    analyst.go.set()

    with pytest.raises(ZeroDivisionError):
        await analyses.answer_by(analyst, instrument, charge_of(account))
    assert await used(account) == 0


async def test_who_cannot_pay_stands_in_nobodys_way(
    analyses: Analyses,
    answers: CountedAnswers,
    analyst: HeldAnalyst,
    instrument: InstrumentFacts,
    account: Account,
    stranger: Account,
) -> None:
    analyst.go.set()
    tasks = asked(analyses, analyst, instrument, [charge_of(account, limit=0)])
    await answers.have_looked(1)
    tasks += asked(analyses, analyst, instrument, [charge_of(stranger)])

    refused, answered = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(refused, AiQuotaExceeded)
    assert isinstance(answered, Answered)
    assert (await used(account), await used(stranger)) == (0, 1)


async def test_answer_is_made_for_the_others_though_the_first_has_gone(
    analyses: Analyses,
    answers: CountedAnswers,
    analyst: HeldAnalyst,
    instrument: InstrumentFacts,
    account: Account,
    stranger: Account,
) -> None:
    (first,) = asked(analyses, analyst, instrument, [charge_of(account)])
    await asyncio.wait_for(analyst.begun.wait(), PATIENCE_S)
    (second,) = asked(analyses, analyst, instrument, [charge_of(stranger)])
    await answers.have_looked(3)
    first.cancel()
    analyst.go.set()

    answered = await second

    assert answered.was_made_before
    assert (analyst.calls, await used(account), await used(stranger)) == (1, 1, 0)


async def test_stopping_gives_back_what_was_not_made(
    analyses: Analyses, analyst: HeldAnalyst, instrument: InstrumentFacts, account: Account
) -> None:
    (task,) = asked(analyses, analyst, instrument, [charge_of(account)])
    await asyncio.wait_for(analyst.begun.wait(), PATIENCE_S)

    await analyses.stop()
    await asyncio.gather(task, return_exceptions=True)

    assert await used(account) == 0


async def test_call_is_counted_before_the_model_is_asked(
    analyses: Analyses, analyst: HeldAnalyst, instrument: InstrumentFacts, account: Account
) -> None:
    (task,) = asked(analyses, analyst, instrument, [charge_of(account)])
    await asyncio.wait_for(analyst.begun.wait(), PATIENCE_S)
    before = await used(account)
    analyst.go.set()
    await task

    assert before == 1
