"""One answer for all who ask at once; the one whose request made it pays, and nobody for a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis.asyncio
from django.conf import settings

from accounts.keys.caller import Allowances, Caller
from accounts.limits.throttling import AiCallStanding, used_on
from accounts.models import Account, AiUsage
from analysis.analyses import (
    KEPT_MS,
    AiCallCharge,
    Analyses,
    AnswerCache,
    Answered,
    AnswerKey,
    CachedAnswer,
    CancellableReservation,
)
from analysis.answer import Analysis
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


class Asking:
    """The analyses of one instrument, by an analyst that a test lets go."""

    def __init__(self, instrument: InstrumentFacts) -> None:
        self.instrument = instrument
        self.answers, self.analyst = CountedAnswers(), HeldAnalyst()
        self.analyses = Analyses(self.answers)

    def by(self, *charges: AiCallCharge) -> list[asyncio.Task[Answered]]:
        return [asyncio.create_task(self.once(each)) for each in charges]

    async def once(self, charge: AiCallCharge) -> Answered:
        return await self.analyses.answer_by(self.analyst, self.instrument, charge)


@pytest.fixture
async def asking(transactional_db: None) -> AsyncIterator[Asking]:
    instrument = await in_thread(make_instrument, "EURUSD")
    made = Asking(catalogue.get(instrument.symbol))
    if settings.REDIS_URL:
        async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as client:
            await client.flushdb()
    await made.analyses.start()
    yield made
    await made.analyses.stop()


@pytest.fixture
def account(transactional_db: None) -> Account:
    return make_account()


@pytest.fixture
def stranger(transactional_db: None) -> Account:
    return make_account()


def charge_of(account: Account, limit: int = LIMIT) -> AiCallCharge:
    allowances = Allowances(tier="free", requests=60, streams=2, ai_calls=limit)
    caller = Caller(account.pk, 1, "somebody", allowances, None, False, str(account.pk))
    return AiCallCharge(caller, AiCallStanding(NOON.date(), limit, 0))


async def used(account: Account) -> int:
    return sum(await in_thread(list, AiUsage.objects.filter(account=account).values_list("used", flat=True)))


async def test_all_who_ask_at_once_get_the_one_answer_and_one_pays(asking: Asking, account: Account) -> None:
    tasks = asking.by(*(charge_of(account) for _ in range(20)))
    asking.analyst.go.set()
    answered = await asyncio.gather(*tasks)
    assert (asking.analyst.calls, await used(account)) == (1, 1)
    assert len({each.fields for each in answered}) == 1
    assert [each.was_made_before for each in answered].count(False) == 1


async def test_answer_over_simulated_prices_is_none_over_real_ones(asking: Asking, account: Account) -> None:
    asking.analyst.go.set()
    made_before = []
    for simulated in (True, True, False, False):
        history = History(asking.instrument.digits)
        history.simulated = simulated
        market.prices.histories[asking.instrument.symbol] = history
        made_before.append((await asking.once(charge_of(account))).was_made_before)
    market.prices.clear()
    assert made_before == [False, True, False, True]


@pytest.mark.parametrize("fault", [LanguageFailed("it is ill"), ZeroDivisionError()], ids=["theirs", "ours"])
async def test_failure_is_shared_and_costs_nothing(
    asking: Asking, account: Account, fault: Exception
) -> None:
    asking.analyst.fault = fault
    mine = charge_of(account)
    tasks = asking.by(mine, charge_of(account), charge_of(account))
    await asking.answers.have_looked(4)
    asking.analyst.go.set()
    answered = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in answered] == [type(fault)] * 3
    assert (asking.analyst.calls, await used(account), mine.standing.remaining) == (1, 0, LIMIT)


async def test_who_cannot_pay_stands_in_nobodys_way(
    asking: Asking, account: Account, stranger: Account
) -> None:
    asking.analyst.go.set()
    tasks = asking.by(charge_of(account, limit=0))
    await asking.answers.have_looked(1)
    tasks += asking.by(charge_of(stranger))
    refused, answered = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(refused, AiQuotaExceeded)
    assert isinstance(answered, Answered)
    assert (await used(account), await used(stranger)) == (0, 1)


async def test_answer_is_counted_first_and_made_for_the_others_though_the_first_has_gone(
    asking: Asking, account: Account, stranger: Account
) -> None:
    (first,) = asking.by(charge_of(account))
    await asyncio.wait_for(asking.analyst.begun.wait(), PATIENCE_S)
    assert await used(account) == 1
    (second,) = asking.by(charge_of(stranger))
    await asking.answers.have_looked(3)
    first.cancel()
    asking.analyst.go.set()
    assert (await second).was_made_before
    assert (asking.analyst.calls, await used(account), await used(stranger)) == (1, 1, 0)


async def test_stopping_gives_back_what_was_not_made(asking: Asking, account: Account) -> None:
    (task,) = asking.by(charge_of(account))
    await asyncio.wait_for(asking.analyst.begun.wait(), PATIENCE_S)
    await asking.analyses.stop()
    await asyncio.gather(task, return_exceptions=True)
    assert await used(account) == 0


def test_call_that_is_counted_too_late_is_given_back(account: Account) -> None:
    reserving = CancellableReservation(account.pk, LIMIT, NOON)
    assert reserving.give_up() is None
    assert reserving.run() is None
    assert used_on(account.pk, NOON.date()) == 0


def test_call_that_was_counted_in_the_last_moment_is_known(account: Account) -> None:
    reserving = CancellableReservation(account.pk, LIMIT, NOON)
    made = reserving.run()
    assert made is not None
    assert made.standing.used == used_on(account.pk, NOON.date()) == 1
    assert reserving.give_up() is made


@pytest.mark.parametrize(
    ("age_ms", "is_fresh"),
    [(0, True), (KEPT_MS - 1, True), (KEPT_MS, False), (1 - KEPT_MS, True), (-KEPT_MS, False)],
)
def test_answer_is_kept_for_five_minutes_whichever_way_the_clock_is_set(age_ms: int, is_fresh: bool) -> None:
    assert CachedAnswer(1_000_000, b"").is_fresh(1_000_000 + age_ms) is is_fresh
