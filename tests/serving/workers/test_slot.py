"""When a worker is started again, and when it is given up."""

from __future__ import annotations

from serving.workers.slot import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    SILENT_AFTER_S,
    SLOW_START_S,
    SOUND_AFTER_S,
    WorkerSlot,
)


def make_place(*, serving: bool = False) -> WorkerSlot:
    place = WorkerSlot(1, 0.0)
    place.started(0.0)
    if serving:
        place.serves(0.0)
    return place


def test_place_is_filled_at_once() -> None:
    assert WorkerSlot(1, 5.0).is_due(5.0)


def test_each_failure_in_a_row_waits_twice_as_long_and_never_for_ever() -> None:
    place, delays = make_place(), []
    for _ in range(10):
        delays.append(place.ended(0.0))
        place.started(0.0)
    assert delays[:4] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S, 8 * FIRST_DELAY_S]
    assert delays[-1] == LONGEST_DELAY_S


def test_worker_that_proved_sound_is_followed_at_once() -> None:
    place = make_place()
    place.ended(0.0)
    place.started(1.0)
    place.serves(2.0)
    assert place.ended(2.0 + SOUND_AFTER_S) == 0.0
    assert place.failures == 0


def test_place_is_due_after_its_delay() -> None:
    place = make_place()
    delay_s = place.ended(10.0)
    assert (place.is_due(10.0), place.is_due(10.0 + delay_s)) == (False, True)


def test_silent_worker_has_to_be_killed() -> None:
    place = make_place(serving=True)
    place.heard(20.0)
    assert not place.has_to_be_killed(20.0 + SILENT_AFTER_S)
    assert place.has_to_be_killed(20.1 + SILENT_AFTER_S)


def test_worker_that_starts_may_take_its_time() -> None:
    place = make_place()
    assert not place.has_to_be_killed(10_000.0)
    told = [now for now in range(0, 200, 10) if place.is_slow_to_start(float(now))]
    assert told == [SLOW_START_S, 2 * SLOW_START_S, 3 * SLOW_START_S]


def test_worker_that_was_told_to_end_has_to() -> None:
    place = make_place(serving=True)
    place.stops(5.0, 20.0)
    # Said twice, by the worker itself and by who told it: that gives it no more time.
    place.stops(15.0, 20.0)
    assert (place.has_to_be_killed(24.0), place.has_to_be_killed(25.0)) == (False, True)


def test_worker_that_somebody_else_told_to_end_is_followed_at_once() -> None:
    place = make_place(serving=True)
    place.stops(5.0, 20.0)
    assert place.ended(6.0) == 0.0


def test_worker_that_leaves_for_its_successor_has_to_end_too() -> None:
    place = make_place(serving=True)
    place.leaves(5.0, 20.0)
    assert (place.state, place.has_to_be_killed(25.0)) == ("leaving", True)
