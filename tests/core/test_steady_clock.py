"""The market's time over a machine's clock that is set while it goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.steady_clock import ClockChange, OwnTime, SteadyClock

NOON_MS = 1_795_003_200_000
MS = 1_000_000
STEP_MS = 300_000
Told = list[tuple[ClockChange, int]]


class Machine:
    """Its two clocks, and the market's."""

    def __init__(self) -> None:
        self.wall_ms, self.passed_ms = NOON_MS, 5_000
        self.told: Told = []
        self.clock = SteadyClock(lambda: self.wall_ms * MS, lambda: self.passed_ms * MS, self.tell)

    def tell(self, change: ClockChange, step_ms: int) -> None:
        self.told.append((change, step_ms))

    def set(self, step_ms: int) -> None:
        self.wall_ms += step_ms

    def go(self, ms: int, every_ms: int = 250, then: Callable[[], None] = lambda: None) -> list[int]:
        """What the market's clock said meanwhile."""
        said = []
        for _ in range(ms // every_ms):
            self.wall_ms += every_ms
            self.passed_ms += every_ms
            said.append(self.clock.now_ms())
            then()
        return said

    @property
    def ahead_ms(self) -> int:
        return self.clock.now_ms() - self.wall_ms

    @property
    def true_ms(self) -> int:
        """By a venue that was right before anybody set the machine's clock."""
        return NOON_MS + self.passed_ms - 5_000

    def hear(self, off_ms: int = 0) -> None:
        """From a venue, 40 ms later than it was said."""
        self.clock.hear(self.true_ms + off_ms - 40, self.clock.now_ms())


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_it_is_the_machines_while_nobody_sets_that_or_a_little_at_a_time(machine: Machine) -> None:
    assert machine.go(60_000)[-1] == machine.wall_ms
    for _ in range(100):
        machine.set(-200)
        machine.go(1_000)
    assert (machine.told, machine.clock.steps, machine.ahead_ms) == ([], 0, 0)


def test_step_ahead_is_followed_once_it_has_held(machine: Machine) -> None:
    machine.set(STEP_MS)
    before, after = machine.go(2_000), machine.go(1_000)
    assert before[-1] == NOON_MS + 2_000
    assert after[-1] == machine.wall_ms
    assert (machine.told, machine.clock.off_ms) == ([(ClockChange.FOLLOWED, STEP_MS)], 0)


@pytest.mark.parametrize("step_ms", [STEP_MS, -STEP_MS])
def test_step_that_is_taken_back_at_once_was_none(machine: Machine, step_ms: int) -> None:
    machine.set(step_ms)
    machine.go(1_500)
    machine.set(-step_ms)
    machine.go(10_000)
    assert (machine.told, machine.ahead_ms) == ([], 0)


@pytest.mark.parametrize("every_ms", [1, 250])
def test_after_a_step_back_it_goes_at_half_speed_until_they_meet(machine: Machine, every_ms: int) -> None:
    machine.set(-STEP_MS)
    machine.go(2_250)
    began_ms = machine.clock.now_ms()
    half = machine.go(60_000, every_ms)
    assert half[-1] - began_ms == 30_000
    assert machine.clock.off_ms == machine.ahead_ms == 270_000
    machine.go(541_000)
    assert (machine.clock.off_ms, machine.ahead_ms) == (0, 0)
    assert machine.told == [(ClockChange.SLOWED, -STEP_MS), (ClockChange.MET, 0)]


def test_step_back_that_is_undone_later_is_followed(machine: Machine) -> None:
    machine.set(-STEP_MS)
    machine.go(60_000)
    machine.set(STEP_MS)
    machine.go(3_000)
    assert machine.ahead_ms == 0


@pytest.mark.parametrize("step_ms", [STEP_MS, -STEP_MS, 3_000, -3_000])
def test_venue_that_agrees_keeps_the_time_as_it_was(machine: Machine, step_ms: int) -> None:
    machine.go(1_000, then=machine.hear)
    machine.set(step_ms)
    said = machine.go(600_000, then=machine.hear)
    assert said[-1] == machine.true_ms
    assert (machine.told, machine.clock.off_ms) == ([(ClockChange.KEPT, step_ms)], -step_ms)
    machine.set(-step_ms)
    machine.go(1_000)
    assert machine.told[1:] == [(ClockChange.MET, 0)]
    assert machine.clock.off_ms == 0


@pytest.mark.parametrize("step_ms", [STEP_MS, -STEP_MS])
def test_venue_that_was_heard_lately_is_waited_for(machine: Machine, step_ms: int) -> None:
    machine.go(1_000, then=machine.hear)
    machine.set(step_ms)
    quiet = machine.go(20_000)
    machine.hear()
    machine.go(1_000)
    assert quiet[-1] == machine.true_ms - 1_000
    assert machine.told == [(ClockChange.KEPT, step_ms)]


def test_venue_that_says_nothing_is_not_waited_for_long(machine: Machine) -> None:
    machine.go(1_000, then=machine.hear)
    machine.set(STEP_MS)
    machine.go(31_000)
    assert machine.told == [(ClockChange.FOLLOWED, STEP_MS)]


@pytest.mark.parametrize("step_ms", [STEP_MS, 7_000, 2_000, -STEP_MS])
def test_clock_that_was_wrong_from_the_start_is_set_right(machine: Machine, step_ms: int) -> None:
    machine.go(10_000, then=lambda: machine.hear(step_ms))
    machine.set(step_ms)
    machine.go(40_000 if step_ms > 0 else 603_000, then=lambda: machine.hear(step_ms))
    slowed = [(ClockChange.SLOWED, step_ms), (ClockChange.MET, 0)]
    assert machine.told == ([(ClockChange.FOLLOWED, step_ms)] if step_ms > 0 else slowed)
    assert machine.ahead_ms == 0


def test_tick_that_was_right_before_a_step_back_ends_the_half_speed(machine: Machine) -> None:
    machine.set(-STEP_MS)
    machine.go(60_000)
    slow_ms = machine.clock.now_ms()
    machine.hear(40)
    assert (slow_ms < machine.true_ms - 5_000, machine.clock.now_ms()) == (True, machine.true_ms)
    assert machine.go(600_000)[-1] == machine.true_ms
    assert [change for change, _ in machine.told] == [ClockChange.SLOWED, ClockChange.KEPT]


def test_tick_that_is_right_by_no_clock_moves_none(machine: Machine) -> None:
    machine.set(-STEP_MS)
    machine.go(60_000)
    before_ms = machine.clock.now_ms()
    for time_ms in (machine.true_ms + 6_000, machine.true_ms + 3_600_000, machine.wall_ms, 0, 1 << 60):
        machine.clock.hear(time_ms, machine.clock.now_ms())
    assert machine.clock.now_ms() == before_ms


def test_pushed_tick_does_not_outweigh_a_venue(machine: Machine) -> None:
    machine.go(1_000, then=machine.hear)
    machine.set(STEP_MS)
    machine.go(10_000, then=machine.hear)
    machine.hear(STEP_MS)
    assert machine.clock.now_ms() == machine.true_ms


def test_time_goes_on_from_prices_that_are_ahead_unless_by_little_or_a_mistake(machine: Machine) -> None:
    for ahead_ms in (-STEP_MS, 0, 5_000, 3_601_000):
        machine.clock.go_on_from(NOON_MS + ahead_ms)
        assert (machine.clock.now_ms(), machine.told) == (NOON_MS, [])
    machine.clock.go_on_from(NOON_MS + STEP_MS)
    assert machine.clock.now_ms() == NOON_MS + STEP_MS
    assert machine.go(60_000)[-1] == NOON_MS + STEP_MS + 30_000
    assert machine.told == [(ClockChange.SLOWED, -STEP_MS)]


@pytest.mark.parametrize("step_ms", [STEP_MS, -STEP_MS])
def test_another_process_time_is_followed_over_a_step_and_from_a_start_after_one(
    machine: Machine, step_ms: int
) -> None:
    def lead() -> None:
        machine.clock.lead(machine.true_ms - 2)

    machine.go(5_000, every_ms=1_000, then=lead)
    machine.set(step_ms)
    machine.go(60_000, every_ms=1_000, then=lead)
    assert abs(machine.clock.now_ms() - machine.true_ms) <= 2
    assert machine.told == []
    new = Machine()
    new.go(5_000, every_ms=1_000, then=lambda: new.clock.lead(new.true_ms + STEP_MS))
    assert new.ahead_ms == STEP_MS


def test_what_waited_to_be_read_says_nothing_of_another_process_time(machine: Machine) -> None:
    machine.clock.lead(NOON_MS - 600_000)
    for second in range(100):
        machine.clock.lead(NOON_MS - 100_000 + second * 1_000)
    machine.go(10_000)
    assert (machine.ahead_ms, machine.told) == (0, [])


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(-400_000, 400_000), st.integers(0, 20_000), st.sampled_from([None, 0, 290_000]))
    )
)
def test_it_never_goes_back_whoever_is_heard(steps: list[tuple[int, int, int | None]]) -> None:
    machine, said = Machine(), [NOON_MS]
    for step_ms, then_ms, off_ms in steps:
        machine.set(step_ms)
        then = (lambda: None) if off_ms is None else partial(machine.hear, off_ms)
        said += machine.go(then_ms, every_ms=500, then=then)
    assert said == sorted(said)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-400_000, 400_000), st.integers(0, 20_000)), max_size=8))
def test_it_meets_the_machines_in_the_end_where_nobody_is_heard(steps: list[tuple[int, int]]) -> None:
    machine = Machine()
    for step_ms, then_ms in steps:
        machine.set(step_ms)
        machine.go(then_ms, every_ms=500)
    # What it is ahead it loses by half of what passes.
    machine.go(2 * abs(machine.ahead_ms) + 10_000, every_ms=2_000)
    assert machine.ahead_ms == 0


def test_time_in_which_the_machine_stood_still_does_not_count() -> None:
    own = OwnTime(100.0, 2.0)
    assert own.pass_to(101.0) == 1.0
    assert own.pass_to(161.0) == 1.0 + 2.0
