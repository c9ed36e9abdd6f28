"""A flood of strangers writes a bounded number of lines, and what is left out is counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from core.logs.sampled import MOST_CALLERS, TELL_REST_EVERY_S, Rate, SampledLog
from tests.patience import until

logger = logging.getLogger("tests.sampled")


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock, caplog: pytest.LogCaptureFixture) -> Iterator[SampledLog]:
    with caplog.at_level(logging.INFO, logger.name):
        yield SampledLog(logger, logging.INFO, Rate(2, 0.1), Rate(5, 1.0), clock=clock)


def test_first_lines_of_a_caller_are_written_whole(log: SampledLog, caplog: pytest.LogCaptureFixture) -> None:
    log.tell("401", "10.0.0.1", "GET /api 401", status=401)

    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["status"]) == ("GET /api 401", 401)


def test_one_caller_in_a_flood_silences_no_other(log: SampledLog, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(1_000):
        log.tell("401", "10.0.0.1", "flood")
    log.tell("401", "10.0.0.2", "somebody else")

    assert caplog.messages == ["flood", "flood", "somebody else"]


def test_many_callers_are_bounded_together(log: SampledLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MOST_CALLERS + 100):
        log.tell("401", str(number), "flood")
    log.tell("404", "1", "another kind")

    assert caplog.messages == ["flood"] * 5 + ["another kind"]


def test_lines_come_again_as_time_passes(
    log: SampledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        log.tell("401", "10.0.0.1", "flood")
    log.forget()
    caplog.clear()
    for _ in range(100):
        clock.now_s += 1
        log.tell("401", "10.0.0.1", "flood")

    assert caplog.messages.count("flood") == 2 + 9


def test_what_was_left_out_is_told_with_its_number(
    log: SampledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(12):
        log.tell("401", "10.0.0.1", "flood")
    clock.now_s += TELL_REST_EVERY_S
    log.tell("404", "10.0.0.1", "later")

    assert caplog.messages == [
        "flood",
        "flood",
        "10 more of 401 were not logged one by one",
        "later",
    ]
    assert caplog.records[2].__dict__["count"] == 10


async def test_end_of_a_flood_is_told_though_nobody_comes_after_it(
    log: SampledLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.logs.sampled.TELL_REST_EVERY_S", 0.01)
    for _ in range(3):
        log.tell("401", "10.0.0.1", "flood")

    await until(lambda: "1 more of 401 were not logged one by one" in caplog.messages)


def test_nothing_is_counted_of_a_level_that_is_off(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = SampledLog(logger, logging.DEBUG, Rate(1, 0), Rate(1, 0), clock=clock)
    with caplog.at_level(logging.INFO, logger.name):
        for _ in range(3):
            log.tell("401", "10.0.0.1", "flood")
    log.tell_rest()

    assert caplog.messages == []
