"""Who accepts the next connection, when a worker is started again, and when it is given up."""

from __future__ import annotations

import pytest

from serving.workers.places import AHEAD, PRESENT_S, Place, Places
from serving.workers.slot import (
    FIRST_DELAY_S,
    LONGEST_DELAY_S,
    SILENT_AFTER_S,
    SLOW_START_S,
    SOUND_AFTER_S,
    WorkerSlot,
)

NOW = 1_000.0


def shown(places: Places, *counts: int) -> list[Place]:
    taken = [places.take() for _ in counts]
    for place, opened in zip(taken, counts, strict=True):
        place.show(opened, NOW)
    return taken


@pytest.mark.parametrize(
    ("counts", "ahead"),
    [
        ((0, 0), [False, False]),
        ((AHEAD, 0), [False, False]),
        ((AHEAD + 1, 0), [True, False]),
        ((1_000 + 50 + AHEAD, 1_000), [False, False]),
        ((1_000 + 50 + AHEAD + 1, 1_000), [True, False]),
    ],
)
def test_who_has_clearly_more_than_the_fewest_leaves_it_to_others(
    counts: tuple[int, ...], ahead: list[bool]
) -> None:
    assert [place.is_ahead(NOW) for place in shown(Places(2), *counts)] == ahead


def test_nobody_waits_for_a_worker_that_is_silent_or_has_left_or_not_begun() -> None:
    crowded, silent = shown(Places(2), 100, 0)
    silent.show(0, NOW - 2 * PRESENT_S)
    assert not crowded.is_ahead(NOW)
    crowded, gone = shown(Places(2), 100, 0)
    gone.leave()
    assert not crowded.is_ahead(NOW)
    places = Places(2)
    (crowded,) = shown(places, 100)
    places.take()
    assert not crowded.is_ahead(NOW)


def test_place_of_a_worker_that_died_is_empty_and_given_again() -> None:
    places = Places(1)
    crowded, empty = shown(places, 100, 0)
    places.give_back(empty)
    assert not crowded.is_ahead(NOW)
    assert places.take().index == empty.index
    assert not crowded.is_ahead(NOW)
    # One more than there are, for a worker that leaves.
    places.take()
    with pytest.raises(OSError, match="have not ended yet"):
        places.take()


def make_slot(*, serving: bool = False) -> WorkerSlot:
    slot = WorkerSlot(1, 0.0)
    assert slot.is_due(0.0)
    slot.started(0.0)
    if serving:
        slot.serves(0.0)
    return slot


def test_each_failure_in_a_row_waits_twice_as_long_and_never_for_ever() -> None:
    slot, delays = make_slot(), []
    for _ in range(10):
        delays.append(slot.ended(0.0))
        assert (slot.is_due(0.0), slot.is_due(delays[-1])) == (False, True)
        slot.started(0.0)
    assert delays[:4] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S, 8 * FIRST_DELAY_S]
    assert delays[-1] == LONGEST_DELAY_S
    # One that proved sound is followed at once.
    slot.serves(2.0)
    assert (slot.ended(2.0 + SOUND_AFTER_S), slot.failures) == (0.0, 0)


def test_silent_worker_has_to_be_killed() -> None:
    slot = make_slot(serving=True)
    slot.heard(20.0)
    assert not slot.has_to_be_killed(20.0 + SILENT_AFTER_S)
    assert slot.has_to_be_killed(20.1 + SILENT_AFTER_S)


def test_worker_that_starts_may_take_its_time() -> None:
    slot = make_slot()
    assert not slot.has_to_be_killed(10_000.0)
    told = [now for now in range(0, 200, 10) if slot.is_slow_to_start(float(now))]
    assert told == [SLOW_START_S, 2 * SLOW_START_S, 3 * SLOW_START_S]


def test_worker_that_was_told_to_end_has_to_and_is_followed_at_once() -> None:
    slot = make_slot(serving=True)
    slot.stops(5.0, 20.0)
    # Said twice, by the worker itself and by who told it: that gives it no more time.
    slot.stops(15.0, 20.0)
    assert (slot.has_to_be_killed(24.0), slot.has_to_be_killed(25.0)) == (False, True)
    assert slot.ended(6.0) == 0.0
    leaving = make_slot(serving=True)
    leaving.leaves(5.0, 20.0)
    assert (leaving.state, leaving.has_to_be_killed(25.0)) == ("leaving", True)
