"""What goes on being wrong is told once, once a minute with how often, and once when it is over."""

from __future__ import annotations

import logging

import pytest

from core.fault_log import LastingFault

TEXT = "Redis does not answer, limits are counted per process"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trouble(clock: Clock) -> LastingFault:
    return LastingFault(logging.getLogger("troubles"), TEXT, clock=clock)


def test_each_cause_is_told_once(trouble: LastingFault, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(10):
        trouble.tell(ConnectionRefusedError("refused"))
        trouble.tell(TimeoutError("late"))
    assert caplog.messages == [f"{TEXT}: refused", f"{TEXT}: late"]


def test_what_lasts_is_told_once_a_minute_with_how_often(
    trouble: LastingFault, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for tenth in range(1250):
        clock.now = tenth / 10
        trouble.tell(OSError("away"))
    assert caplog.messages == [
        f"{TEXT}: away",
        f"{TEXT}: away (599 times more since it was last told)",
        f"{TEXT}: away (599 times more since it was last told)",
    ]


def test_the_end_is_told_once(trouble: LastingFault, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    trouble.over()
    trouble.tell(OSError("away"))
    clock.now = 12
    for _ in range(5):
        trouble.over()
    assert caplog.messages == [f"{TEXT}: away", f"{TEXT}: over after 12 s"]


def test_what_comes_and_goes_is_not_told_each_time(
    trouble: LastingFault, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(50):
        clock.now = second
        trouble.tell(OSError("away"))
        trouble.over()
    assert caplog.messages == [f"{TEXT}: away", f"{TEXT}: over after 0 s"]
