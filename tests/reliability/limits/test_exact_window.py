"""Rows 1 and 2: of 100 simultaneous requests at a limit of 60, exactly 60 are admitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from redis import Redis

from tests.factories import make_account, make_key
from tests.reliability.clients.crowd import rush
from tests.reliability.conftest import Tell, longer
from tests.reliability.services.processes import Installation, Process

# Several rounds of five: a race that shows once in twenty would pass a single one.
SETS, ROUNDS = longer(2, 5), 5
EXACT = Counter({200: 60, 429: 40})
pytestmark = [pytest.mark.usefixtures("rows"), pytest.mark.row("1, 2", "exactly the limit is admitted")]


@pytest.fixture(scope="module")
def four(scaled: Installation) -> Iterator[list[Process]]:
    with scaled.serve(4) as servers:
        yield servers


def make_keys(installation: Installation, count: int = 1) -> list[str]:
    """Keys of one new account on the Free tier: 60 requests a minute."""
    with installation.orm():
        account = make_account()
        return [make_key(account) for _ in range(count)]


def five_fresh_rounds(
    installation: Installation, servers: Sequence[Process], keys_each: int, tell: Tell
) -> list[Counter[int]]:
    """Each on an account of its own."""
    rounds = [rush(servers, make_keys(installation, keys_each)) for _ in range(ROUNDS)]
    tell(f"admitted of 100 requests: {[statuses[200] for statuses in rounds]}")
    return rounds


@pytest.mark.parametrize("number", range(SETS))
def test_four_processes_admit_exactly_the_limit(
    scaled: Installation, four: list[Process], number: int, tell: Tell
) -> None:
    keys = make_keys(scaled)
    rounds = []
    for _ in range(ROUNDS):
        rounds.append(rush(four, keys))
        with Redis.from_url(scaled.redis_url) as redis:
            assert redis.delete(*redis.keys("tickwire:window:account:*")) == 1
    tell(f"admitted of 100 requests: {[statuses[200] for statuses in rounds]}")
    assert rounds == [EXACT] * ROUNDS


def test_freshly_started_processes_admit_exactly_the_limit(
    scaled: Installation, four: list[Process], tell: Tell
) -> None:
    assert five_fresh_rounds(scaled, four, 1, tell) == [EXACT] * ROUNDS


def test_two_keys_of_an_account_share_the_limit(
    scaled: Installation, four: list[Process], tell: Tell
) -> None:
    assert five_fresh_rounds(scaled, four, 2, tell) == [EXACT] * ROUNDS


def test_control_processes_that_count_separately_admit_too_many(scaled: Installation, tell: Tell) -> None:
    with ExitStack() as running:
        alone = [running.enter_context(scaled.web_process(REDIS_PREFIX=f"alone{n}")) for n in range(4)]
        statuses = rush(alone, make_keys(scaled))
    tell(f"admitted of 100 requests: {statuses[200]}")
    assert statuses == {200: 100}


def test_control_sequential_requests_get_sixty_answers_and_then_429(
    scaled: Installation, four: list[Process]
) -> None:
    (key,) = make_keys(scaled)
    statuses = [four[n % 4].ask("/api/symbols", key).status_code for n in range(65)]
    assert statuses == [200] * 60 + [429] * 5


def test_one_process_in_memory_admits_exactly_the_limit(embedded: Installation, tell: Tell) -> None:
    with embedded.serve(1) as servers:
        for _ in range(SETS):
            assert five_fresh_rounds(embedded, servers, 1, tell) == [EXACT] * ROUNDS
        assert five_fresh_rounds(embedded, servers, 2, tell) == [EXACT] * ROUNDS
