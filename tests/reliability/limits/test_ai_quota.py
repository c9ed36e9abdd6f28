"""Of 100 simultaneous analyses at five AI calls a day, exactly five are made; of one symbol, exactly one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from accounts.models import Account, AiUsage
from instruments.models import Instrument
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.reliability.clients.crowd import Answer, rush_for
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

CROWD, LIMIT, ROUNDS = 100, 5, 3
DAY_S, NEAR_S = 86_400, 120
# Each round asks for symbols that nobody asked for before.
SYMBOLS = [f"SYM{number}" for number in range(CROWD * ROUNDS)]
EXACT = Counter({200: LIMIT, 429: CROWD - LIMIT})
pytestmark = pytest.mark.row("68", "exactly the limit is used")


def prepare(installation: Installation, symbols: Sequence[str]) -> None:
    with installation.orm():
        make_tier("five", requests_per_minute=10_000, ai_calls_per_day=LIMIT)
        first = make_instrument("FIRST")
        facts = {
            field.attname: getattr(first, field.attname)
            for field in Instrument._meta.concrete_fields
            if field.attname not in ("id", "symbol")
        }
        Instrument.objects.bulk_create(Instrument(symbol=symbol, **facts) for symbol in symbols)


@pytest.fixture(autouse=True)
def _one_day() -> None:
    """The allowance is of a UTC day: the end of one that is near is waited for."""
    left_s = DAY_S - time.time() % DAY_S
    if left_s < NEAR_S:
        time.sleep(left_s + 1)


@pytest.fixture(scope="module")
def two(scaled: Installation) -> Iterator[list[Process]]:
    prepare(scaled, [*SYMBOLS, "SHARED", "COMMON"])
    with scaled.serve(2) as servers:
        yield servers


def make_caller(installation: Installation) -> tuple[Account, str]:
    with installation.orm():
        account = make_account(tier="five")
        return account, make_key(account)


def statuses(answers: Sequence[Answer]) -> Counter[int]:
    return Counter(status for status, _ in answers)


def made(answers: Sequence[Answer]) -> int:
    return sum(1 for _, answer in answers if b'"cached":false' in answer)


def used(installation: Installation, account: Account) -> list[int]:
    with installation.orm():
        return list(AiUsage.objects.filter(account=account).values_list("used", flat=True))


def test_two_processes_create_exactly_as_many_analyses_as_allowed(
    scaled: Installation, two: list[Process], tell: Tell
) -> None:
    rounds, counted = [], []
    for number in range(ROUNDS):
        account, key = make_caller(scaled)
        symbols = SYMBOLS[CROWD * number : CROWD * (number + 1)]
        answers = rush_for(two, [key], [f"/api/analysis/{symbol}" for symbol in symbols])
        rounds.append((statuses(answers), made(answers)))
        counted.append(used(scaled, account))
        refused = [answer.lower() for status, answer in answers if status == 429]
        assert all(b'"ai_quota_exceeded"' in answer and b"x-ai-remaining: 0" in answer for answer in refused)
    tell(f"analyses made for {CROWD} requests: {[number for _, number in rounds]}, counted: {counted}")
    assert rounds == [(EXACT, LIMIT)] * ROUNDS
    assert counted == [[LIMIT]] * ROUNDS


def test_a_crowd_asking_for_one_symbol_causes_one_analysis(
    scaled: Installation, two: list[Process], tell: Tell
) -> None:
    account, key = make_caller(scaled)

    answers = rush_for(two, [key], ["/api/analysis/SHARED"] * CROWD)

    tell(f"analyses made for {CROWD} requests: {made(answers)}")
    assert statuses(answers) == {200: CROWD}
    assert (made(answers), used(scaled, account)) == (1, [1])
    assert len({answer.partition(b'"symbol"')[2].partition(b',"cached"')[0] for _, answer in answers}) == 1


def test_a_crowd_of_accounts_asking_for_one_symbol_is_charged_once(
    scaled: Installation, two: list[Process]
) -> None:
    callers = [make_caller(scaled) for _ in range(10)]

    answers = rush_for(two, [key for _, key in callers], ["/api/analysis/COMMON"] * CROWD)

    assert statuses(answers) == {200: CROWD}
    assert sum(sum(used(scaled, account)) for account, _ in callers) == made(answers) == 1
