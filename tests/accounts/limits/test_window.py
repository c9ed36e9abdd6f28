from __future__ import annotations

import math
import time
from bisect import bisect_left
from datetime import timedelta

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from accounts.limits.window import WINDOW_NS, MemoryWindow, Standing

SECOND = 1_000_000_000

# Steps between requests: crowds, ordinary traffic, and the very edge of the window.
steps = st.one_of(
    st.just(0),
    st.integers(0, 5 * SECOND),
    st.sampled_from([WINDOW_NS - 1, WINDOW_NS, WINDOW_NS + 1, WINDOW_NS // 2]),
)
arrivals = st.lists(steps, min_size=1, max_size=120)
limits = st.integers(1, 12)


class Clock:
    def __init__(self, now: int = 123_456_789_012_345) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


def admit(window: MemoryWindow, limit: int, key: str = "a") -> Standing:
    return window.count(key, limit, cost=1)


def busiest_minute(stamps: list[int]) -> int:
    """The most stamps in any half-open window of 60 seconds; it is enough to start one at each stamp."""
    return max((bisect_left(stamps, first + WINDOW_NS) - n for n, first in enumerate(stamps)), default=0)


@given(arrivals, limits)
def test_no_minute_holds_more_than_the_limit(steps: list[int], limit: int) -> None:
    clock = Clock()
    window, admitted = MemoryWindow(clock), []
    for step in steps:
        clock.now += step
        if admit(window, limit).admitted:
            admitted.append(clock.now)
    assert busiest_minute(admitted) <= limit


@given(arrivals, limits)
def test_a_request_is_refused_only_in_a_full_minute(steps: list[int], limit: int) -> None:
    clock = Clock()
    window, admitted = MemoryWindow(clock), []
    for step in steps:
        clock.now += step
        if admit(window, limit).admitted:
            admitted.append(clock.now)
        else:
            assert len([stamp for stamp in admitted if stamp > clock.now - WINDOW_NS]) == limit


@given(arrivals, limits)
def test_remaining_is_how_many_more_are_admitted_now(steps: list[int], limit: int) -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for step in steps:
        clock.now += step
        standing = admit(window, limit)
    more = sum(admit(window, limit).admitted for _ in range(limit + 1))
    assert more == standing.remaining


@given(arrivals, limits, limits)
def test_waiting_the_promised_seconds_succeeds(steps: list[int], limit: int, later_limit: int) -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for step in steps:
        clock.now += step
        admit(window, limit)
    clock.wait(window.count("a", later_limit, cost=0).wait_s)
    assert admit(window, later_limit).admitted


@given(arrivals, limits)
def test_a_refused_caller_is_not_kept_waiting_too_long(steps: list[int], limit: int) -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for step in steps:
        clock.now += step
        admit(window, limit)
    refused = admit(window, 1)
    assert not refused.admitted
    clock.wait(refused.frees_in - 1e-6)
    assert not admit(window, 1).admitted


@pytest.mark.parametrize("start", [0, 7, 2**53 + 1])
def test_slot_frees_exactly_after_a_minute(start: int) -> None:
    clock = Clock(start)
    window = MemoryWindow(clock)
    admit(window, 1)
    clock.now += WINDOW_NS - 1
    assert not admit(window, 1).admitted
    clock.now += 1
    assert admit(window, 1).admitted


def test_what_was_admitted_elsewhere_is_counted_for_a_minute() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for _ in range(4):
        window.note("a", 3)
        clock.wait(1)
    # Of the four, the newest three are kept.
    standing = admit(window, 3)
    assert (standing.admitted, standing.used, standing.frees_in) == (False, 3, 57)
    clock.wait(57)
    assert admit(window, 3).admitted


def test_lowered_limit_refuses_until_enough_have_left() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for _ in range(5):
        admit(window, 5)
        clock.wait(1)
    standing = admit(window, 2)
    assert (standing.admitted, standing.used, standing.remaining) == (False, 5, 0)
    # The fourth of the five must leave before there are fewer than two.
    assert standing.frees_in == 60 - 5 + 3
    clock.wait(standing.frees_in)
    assert admit(window, 2).admitted


def test_raised_limit_holds_in_the_same_window() -> None:
    window = MemoryWindow(Clock())
    assert [admit(window, 1).admitted, admit(window, 1).admitted, admit(window, 2).admitted] == [
        True,
        False,
        True,
    ]


def test_refused_request_takes_no_slot() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    admit(window, 1)
    for _ in range(10):
        clock.wait(5)
        admit(window, 1)
    clock.wait(10)
    assert admit(window, 1).admitted


def test_look_costs_nothing() -> None:
    window = MemoryWindow(Clock())
    for _ in range(3):
        assert window.count("a", 1, cost=0).remaining == 1
    assert admit(window, 1).admitted
    assert window.count("a", 1, cost=0) == Standing(False, 1, 1, 60.0)


def test_accounts_do_not_share_a_window() -> None:
    window = MemoryWindow(Clock())
    assert admit(window, 1, "a").admitted
    assert admit(window, 1, "b").admitted


def test_wait_is_in_whole_seconds_rounded_up() -> None:
    assert [Standing(False, 1, 1, frees_in).wait_s for frees_in in (0.0, 0.001, 59.0, 59.000000001)] == [
        0,
        1,
        59,
        60,
    ]
    assert math.ceil(Standing(False, 1, 1, 1e-9).frees_in) == 1


def test_stepped_wall_clock_changes_nothing() -> None:
    window = MemoryWindow()
    assert admit(window, 1).admitted
    with time_machine.travel(timedelta(hours=1)):
        assert not admit(window, 1).admitted
    with time_machine.travel(timedelta(hours=-1)):
        assert admit(window, 2).admitted


def test_windows_that_ran_empty_are_dropped() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for number in range(MemoryWindow.SWEEP_ABOVE):
        admit(window, 1, f"address {number}")
    clock.wait(60)
    admit(window, 1, "one more")
    assert list(window.admitted) == ["one more"]


def test_sweeping_drops_nobody_who_is_in_a_window() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for number in range(MemoryWindow.SWEEP_ABOVE + 10):
        admit(window, 1, f"address {number}")
    assert not admit(window, 1, "address 0").admitted


def test_full_house_is_not_swept_for_each_newcomer() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for number in range(MemoryWindow.SWEEP_ABOVE + 1):
        admit(window, 1, f"address {number}")
    assert window.sweep_above == 2 * MemoryWindow.SWEEP_ABOVE


@pytest.mark.parametrize(("used", "left"), [(4, 6), (10, 0), (12, 0)])
def test_figures_of_a_standing_are_whole_and_never_negative(used: int, left: int) -> None:
    with time_machine.travel("2026-11-18T12:00:00.250Z", tick=False):
        standing = Standing(used < 10, 10, used, 12.5)
        now_s = int(time.time())

        assert standing.figures() == (left, now_s + 13, 13)
        assert standing.figures() == (standing.remaining, standing.reset, standing.wait_s)


def test_a_sweep_drops_only_windows_that_have_run_empty() -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    window.sweep_above = 2
    admit(window, 2, "empty")
    admit(window, 2, "used")
    clock.wait(50)
    admit(window, 2, "used")
    clock.wait(20)

    admit(window, 2, "new")

    assert set(window.admitted) == {"used", "new"}
    assert window.count("used", 2, cost=0).used == 1
