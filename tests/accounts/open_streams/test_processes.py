"""Processes that claim at the same moment, are killed, or are stopped for a while."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.patience import wait_until

from .stream_processes import StreamProcess, rush, stream_processes

pytestmark = pytest.mark.served

PROCESSES, EACH, LIMIT, ROUNDS = 3, 34, 10, 20


@pytest.fixture(scope="module")
def all_processes(own_redis: str) -> Iterator[list[StreamProcess]]:
    with stream_processes(PROCESSES + 1, own_redis) as running:
        yield running


@pytest.fixture
def processes(all_processes: list[StreamProcess]) -> list[StreamProcess]:
    return all_processes[:PROCESSES]


@pytest.fixture
def mortal(all_processes: list[StreamProcess]) -> StreamProcess:
    """For one test."""
    return all_processes[PROCESSES]


def test_exactly_the_limit_is_admitted(processes: list[StreamProcess]) -> None:
    admitted = [rush(processes, 100 + number, EACH, LIMIT) for number in range(ROUNDS)]
    assert admitted == [LIMIT] * ROUNDS


def test_takeovers_at_once_leave_exactly_the_limit(processes: list[StreamProcess]) -> None:
    before = sum(len(process.ask("ended")) for process in processes)
    assert rush(processes, 3, EACH, LIMIT, takeover=True) == PROCESSES * EACH

    def ended() -> int:
        return sum(len(process.ask("ended")) for process in processes) - before

    wait_until(lambda: ended() == PROCESSES * EACH - LIMIT)
    assert processes[0].ask("count", account_id=3) == LIMIT


def test_stopped_process_loses_what_was_given_to_others(processes: list[StreamProcess]) -> None:
    here, _, sleeper = processes
    before = len(sleeper.ask("ended"))
    assert sleeper.claim(5, LIMIT, LIMIT) == LIMIT
    sleeper.send(signal.SIGSTOP)
    wait_until(lambda: here.claim(5, 4, LIMIT) == 4)
    sleeper.send(signal.SIGCONT)
    wait_until(lambda: len(sleeper.ask("ended")) == before + 4)
    assert sleeper.ask("ended")[before:] == ["stream_limit_exceeded"] * 4
    assert here.ask("count", account_id=5) == LIMIT
    assert here.ask("ended").count("stream_limit_exceeded") == 0


def test_killed_process_frees_its_slots(processes: list[StreamProcess], mortal: StreamProcess) -> None:
    assert mortal.claim(4, LIMIT, LIMIT) == LIMIT
    assert processes[0].claim(4, 1, LIMIT) == 0
    mortal.send(signal.SIGKILL)
    wait_until(lambda: processes[0].claim(4, 1, LIMIT) == 1)
    assert processes[1].claim(4, LIMIT, LIMIT) == LIMIT - 1
