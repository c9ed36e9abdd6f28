from __future__ import annotations

import time
from collections import defaultdict
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
limits = st.integers(1, 12)
asks = st.lists(
    st.tuples(steps, st.sampled_from("aab"), limits, st.sampled_from([1, 1, 1, 0])), min_size=1, max_size=120
)
starts = st.sampled_from([0, 7, 123_456_789_012_345, 2**53 + 1])


class Clock:
    def __init__(self, now: int = 123_456_789_012_345) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


def admit(window: MemoryWindow, limit: int, key: str = "a") -> Standing:
    return window.count(key, limit, cost=1)


@given(starts, asks)
def test_no_minute_holds_more_than_the_limit_and_no_request_is_refused_in_another(
    start: int, asked: list[tuple[int, str, int, int]]
) -> None:
    clock, admitted = Clock(start), defaultdict[str, list[int]](list)
    window = MemoryWindow(clock)
    for step, key, limit, cost in asked:
        clock.now += step
        of_minute = [stamp for stamp in admitted[key] if stamp > clock.now - WINDOW_NS]
        standing = window.count(key, limit, cost)
        assert standing.admitted is (len(of_minute) < limit)
        if standing.admitted and cost:
            admitted[key].append(clock.now)
            of_minute.append(clock.now)
        assert (standing.used, standing.remaining) == (len(of_minute), max(0, limit - len(of_minute)))


@given(asks, limits)
def test_the_promised_wait_is_long_enough_and_no_longer(
    asked: list[tuple[int, str, int, int]], later_limit: int
) -> None:
    clock = Clock()
    window = MemoryWindow(clock)
    for step, key, limit, cost in [*asked, (0, "a", 1, 1)]:
        clock.now += step
        window.count(key, limit, cost)
    standing = window.count("a", later_limit, cost=0)
    if not standing.admitted:
        clock.wait(standing.frees_in - 1e-6)
        assert not window.count("a", later_limit, cost=0).admitted
        clock.wait(1e-6)
        assert standing.frees_in <= standing.wait_s < standing.frees_in + 1
    else:
        clock.wait(standing.wait_s)
    assert admit(window, later_limit).admitted


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


def test_stepped_wall_clock_changes_nothing() -> None:
    window = MemoryWindow()
    assert admit(window, 1).admitted
    with time_machine.travel(timedelta(hours=1)):
        assert not admit(window, 1).admitted
    with time_machine.travel(timedelta(hours=-1)):
        assert admit(window, 2).admitted


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


def test_full_house_is_not_swept_for_each_newcomer() -> None:
    window = MemoryWindow(Clock())
    for number in range(MemoryWindow.SWEEP_ABOVE + 1):
        admit(window, 1, f"address {number}")
    assert window.sweep_above == 2 * MemoryWindow.SWEEP_ABOVE
    assert not admit(window, 1, "address 0").admitted


@pytest.mark.parametrize(("used", "left"), [(4, 6), (10, 0), (12, 0)])
def test_figures_of_a_standing_are_whole_and_never_negative(used: int, left: int) -> None:
    with time_machine.travel("2026-11-18T12:00:00.250Z", tick=False):
        standing, now_s = Standing(used < 10, 10, used, 12.5), int(time.time())
        assert standing.figures() == (left, now_s + 13, 13)
        assert standing.figures() == (standing.remaining, standing.reset, standing.wait_s)
