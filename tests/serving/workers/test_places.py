"""Who accepts the next connection."""

from __future__ import annotations

import pytest

from serving.workers.places import AHEAD, PRESENT_S, Place, Places

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


def test_nobody_waits_for_a_worker_that_is_silent() -> None:
    crowded, empty = shown(Places(2), 100, 0)
    empty.show(0, NOW - 2 * PRESENT_S)
    assert not crowded.is_ahead(NOW)


def test_nobody_waits_for_a_worker_that_left() -> None:
    crowded, empty = shown(Places(2), 100, 0)
    empty.leave()
    assert not crowded.is_ahead(NOW)


def test_nobody_waits_for_a_worker_that_has_not_begun() -> None:
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


def test_workers_that_do_not_end_take_no_more_places_than_there_are() -> None:
    places = Places(1)
    for _ in range(3):
        places.take()
    with pytest.raises(OSError, match="have not ended yet"):
        places.take()
