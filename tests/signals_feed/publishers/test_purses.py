from __future__ import annotations

from itertools import product
from math import isfinite, prod
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signals_feed.publishers.purses import PROVEN, SHARES, STANDS, Purses, Rank, Standing, mean_of, rank_r

A, B, C = (UUID(int=number) for number in range(3))


def rank_of(*results: float) -> Rank:
    """One signal after the other."""
    rank = Rank()
    for number, result in enumerate(results):
        rank.fill(UUID(int=100 + number))
        rank.close(UUID(int=100 + number), result)
    return rank


@pytest.mark.parametrize(
    ("gain", "distance", "unit", "keeps_mark", "expected"),
    [
        (30.0, 20.0, 5.0, True, 1.5),
        # The stop is tiny beside the jumps of the price.
        (30.0, 0.1, 15.0, True, 2.0),
        (300.0, 20.0, 5.0, True, 10.0),
        # A loss counts in full.
        (-300.0, 20.0, 5.0, True, -15.0),
        (30.0, 20.0, 5.0, False, 0.0),
        (-30.0, 20.0, 5.0, False, -1.5),
    ],
)
def test_result_is_in_units_that_no_jump_exceeds_by_much(
    gain: float, distance: float, unit: float, keeps_mark: bool, expected: float
) -> None:
    assert rank_r(gain, distance, unit, keeps_mark=keeps_mark) == expected


def test_stakes_are_shares_of_what_is_free_at_the_fill() -> None:
    rank = Rank()
    rank.fill(A)
    rank.fill(B)
    rank.close(A, 2.0)
    rank.fill(C)
    for share, purse in zip(SHARES, rank.read({B: -1.0, C: 0.5}).purses, strict=True):
        second = share * (1 - 3 * share)
        third = share * (1 + 2 * share - 3 * second)
        assert purse == pytest.approx(1 + 2 * share - second + 0.5 * third)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=9), st.integers(0, 3))
def test_without_skill_no_order_of_events_gains_on_average(steps: list[int], size: int) -> None:
    """A step closes the open signal of that number or, if there is none, fills another."""
    tape: list[tuple[UUID, bool]] = []
    still_open: list[UUID] = []
    for number, step in enumerate(steps):
        if step < len(still_open):
            tape.append((still_open.pop(step), True))
        else:
            tape.append((UUID(int=number), False))
            still_open.append(UUID(int=number))
    tape += [(key, True) for key in still_open]
    keys = [key for key, is_close in tape if is_close]
    means = []
    for signs in product((-1, 1), repeat=len(keys)):
        purses, results = Purses(), dict(zip(keys, signs, strict=True))
        for key, is_close in tape:
            if is_close:
                purses.close(key, size * results[key])
            else:
                purses.fill(key)
        means.append(mean_of(purses.worth({})))
    assert sum(means) / len(means) == pytest.approx(1)


def test_purse_that_lost_more_than_it_held_never_comes_back() -> None:
    standing = rank_of(-20, *[10] * 10).read({})
    alive = [share for share, purse in zip(SHARES, standing.purses, strict=True) if purse]
    assert alive == [0.01, 0.02, 0.04]
    assert standing.purses[0] == pytest.approx(0.8 * 1.1**10)
    # Nobody pays its debt, the other purses neither.
    assert standing.highest == standing.evidence > 1


def test_what_is_open_is_liable_and_a_debt_stakes_nothing() -> None:
    rank = Rank()
    rank.fill(A)
    rank.fill(B)
    rank.close(A, -13.0)
    rank.fill(C)
    rank.close(C, -20.0)
    assert rank.read({B: 0.0}).purses[-1] == 0


def test_proven_is_what_was_reached_by_results_and_stands_with_what_is_open() -> None:
    results = [1.5] * 30
    rank = rank_of(*results)
    reached = rank.read({})
    assert reached.highest == reached.evidence > PROVEN
    assert reached.is_proven

    # What is open proves nothing yet, however far it is ahead.
    rank = rank_of(*results[:25])
    rank.fill(A)
    before = rank.read({A: 0.0}).highest
    ahead = rank.read({A: 10.0})
    assert ahead.evidence > PROVEN > ahead.highest == before
    assert not ahead.is_proven

    rank = rank_of(*results)
    behind = {UUID(int=number): -3.0 for number in range(20)}
    for key in behind:
        rank.fill(key)
    lost = UUID(int=20)
    rank.fill(lost)
    rank.close(lost, -3.0)
    fallen = rank.read(behind)
    assert fallen.highest == reached.highest
    assert fallen.evidence < STANDS
    assert not fallen.is_proven


def brute_force(results: list[float]) -> float | None:
    def evidence(less: float) -> float:
        moves = [[1 + share * (each - less) for each in results] for share in SHARES]
        return sum(prod(each) for each in moves if min(each) > 0) / len(SHARES)

    return max((step / 100 for step in range(1000) if evidence(step / 100) >= STANDS), default=None)


def test_at_least_r_is_what_every_result_can_spare() -> None:
    results = [10.0, 9.0] * 4 + [2.0, -1.0, 1.0, 0.5, -0.4] * 12
    rank, found = Rank(), list[float | None]()
    for number, result in enumerate(results):
        rank.fill(UUID(int=number))
        if number % 8 == 7 or number == 1:
            # Asking on the way changes no later answer.
            standing: Standing = rank.read({UUID(int=number): -0.5})
            found.append(standing.at_least_r)
            assert standing.at_least_r == brute_force([*results[:number], -0.5])
        rank.close(UUID(int=number), result)
    assert found[0] is None
    assert found[-1] is not None
    assert found[-1] > 0


def test_no_record_is_too_long_or_too_good() -> None:
    standing = rank_of(*[10.0] * 3_000).read({})
    assert all(isfinite(purse) and purse > 1e90 for purse in standing.purses)
    assert standing.at_least_r is not None
    assert standing.at_least_r > 9
