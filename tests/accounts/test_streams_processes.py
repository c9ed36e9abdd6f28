"""RELIABILITY's rows 3 and 4: processes that claim at the same moment, are killed, or sleep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.accounts.stream_processes import (
    StreamProcess,
    rush,
    stream_processes,
)

PROCESSES, EACH, LIMIT, ROUNDS = 3, 34, 10, 20
GONE_WITHIN_S = 5.0


@pytest.fixture(scope="module")
def processes(own_redis: str) -> Iterator[list[StreamProcess]]:
    with stream_processes(PROCESSES, own_redis) as running:
        yield running


def test_exactly_the_limit_is_admitted(processes: list[StreamProcess]) -> None:
    admitted = [rush(processes, 100 + number, EACH, LIMIT) for number in range(ROUNDS)]
    assert admitted == [LIMIT] * ROUNDS
