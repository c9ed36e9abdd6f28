"""The kernel and other machines cannot be set wrong here; `test_command.py` moves our own clock."""

from __future__ import annotations

import pytest

from operations.doctor.clocks import clock_state, compare, judge

KEPT, ALONE, UNKNOWN = 0, 5, -1


@pytest.mark.parametrize(("state", "level"), [(KEPT, "ok"), (ALONE, "warn"), (UNKNOWN, "warn")])
def test_a_clock_that_nobody_keeps_right_is_told(state: int, level: str) -> None:
    assert judge(state).level == level


def test_the_kernel_is_asked() -> None:
    assert clock_state() in range(6)


@pytest.mark.parametrize(
    ("theirs", "answered_at", "level"),
    [
        (1000.0, 1000.0, "ok"),
        (1000.4, 1000.0, "ok"),
        (1001.0, 1000.0, "warn"),
        (994.0, 1000.0, "fail"),
        # A slow answer says nothing about the clock.
        (1002.0, 1004.0, "ok"),
        (1003.9, 1004.0, "ok"),
    ],
)
def test_clocks_that_differ_are_told(theirs: float, answered_at: float, level: str) -> None:
    assert compare("redis", "Redis", theirs, 1000.0, answered_at).level == level
