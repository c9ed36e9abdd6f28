"""Rows 1 and 2: of 100 simultaneous requests at a limit of 60, exactly 60 are admitted."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from redis import Redis

from tests.factories import make_account, make_key
from tests.reliability.clients.crowd import rush
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

# A race that shows once in twenty would pass a single round.
ROUNDS = 5
EXACT = Counter({200: 60, 429: 40})
pytestmark = pytest.mark.row("1, 2", "exactly the limit is admitted")


@pytest.fixture(scope="module")
def four(scaled: Installation) -> Iterator[list[Process]]:
    with scaled.serve(4) as servers:
        yield servers


def make_keys(installation: Installation, count: int = 1) -> list[str]:
    """Keys of one new account on the Free tier: 60 requests a minute."""
    with installation.orm():
        account = make_account()
        return [make_key(account) for _ in range(count)]


def fresh_rounds(
    installation: Installation, servers: Sequence[Process], keys_each: int, tell: Tell
) -> list[Counter[int]]:
    """Each on an account of its own."""
    rounds = [rush(servers, make_keys(installation, keys_each)) for _ in range(ROUNDS)]
    tell(f"admitted of 100 requests: {[statuses[200] for statuses in rounds]}")
    return rounds


@pytest.mark.parametrize("keys_each", [1, 2], ids=["one key", "two keys"])
def test_four_processes_admit_exactly_the_limit_of_an_account(
    scaled: Installation, four: list[Process], keys_each: int, tell: Tell
) -> None:
    assert fresh_rounds(scaled, four, keys_each, tell) == [EXACT] * ROUNDS


def test_an_account_whose_window_is_gone_is_admitted_exactly_the_limit_again(
    scaled: Installation, four: list[Process]
) -> None:
    keys = make_keys(scaled)
    for _ in range(ROUNDS):
        with Redis.from_url(scaled.redis_url) as redis:
            redis.delete(*redis.keys("tickwire:window:account:*"))
            assert rush(four, keys) == EXACT


def test_control_processes_that_count_separately_admit_too_many(scaled: Installation, tell: Tell) -> None:
    with ExitStack() as running:
        alone = [running.enter_context(scaled.web_process(REDIS_PREFIX=f"alone{n}")) for n in range(2)]
        statuses = rush(alone, make_keys(scaled))
    tell(f"admitted of 100 requests: {statuses[200]}")
    assert statuses == {200: 100}


@pytest.fixture(scope="module")
def one(embedded_for_module: Installation) -> Iterator[list[Process]]:
    with embedded_for_module.serve(1) as servers:
        yield servers


@pytest.mark.parametrize("keys_each", [1, 2], ids=["one key", "two keys"])
def test_one_process_in_memory_admits_exactly_the_limit(
    embedded_for_module: Installation, one: list[Process], keys_each: int, tell: Tell
) -> None:
    assert fresh_rounds(embedded_for_module, one, keys_each, tell) == [EXACT] * ROUNDS


@pytest.mark.row("77", "at most twice the limit, as documented")
def test_a_killed_process_starts_a_new_rate_window_only_once(
    embedded_for_module: Installation, one: list[Process], tell: Tell
) -> None:
    keys = make_keys(embedded_for_module)
    before = rush(one, keys)[200]
    os.kill(one[0].pid, signal.SIGKILL)
    with embedded_for_module.serve(1) as servers:
        after = [rush(servers, keys)[200] for _ in range(2)]
    tell(f"admitted of 100 before the kill {before}, after it {after[0]}, and then {after[1]}")
    assert (before, after) == (60, [60, 0])
