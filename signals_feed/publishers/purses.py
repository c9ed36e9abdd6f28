"""How sure it is that a publisher has skill: what purses would hold that were staked on every signal.

A stake is a share of what its purse holds free. It is fixed by the fill, and three times itself is set aside
for it. So without skill a purse gains nothing on average, whatever the publisher tries, and those that began
with 1 ever hold 5,000 for fewer than one account in 5,000 (Ville's inequality), however often one looks.
Gains are cut at 10 R. Losses count in full: cut as well, jumps would pay those who hold both sides."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

# A small share survives bad luck, a large one gains fast; which fits is unknown beforehand.
SHARES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3)
RESERVE_R = 3
MOST_R = 10
# A unit is at least half the largest jump between two ticks of the days before, closures included: a loss
# exceeds what is set aside only where a jump exceeds all of more than a year. Earnings and decisions move
# prices on known dates, some once a quarter: a shorter past would not contain the last one.
JUMP_IN_UNITS = 2
JUMPS_OF_DAYS = 400
PROVEN = 5_000
STANDS = 20
# A purse that holds more keeps no more, so that it never exceeds what a float can hold.
MOST_HELD = 1e100
# Steps of `at_least_r`.
STEPS_IN_R = 100

Marks = Mapping[UUID, float]
"""The present `rank_r` of every open signal."""


def rank_r(gain: float, distance: float, unit: float, *, keeps_mark: bool = True) -> float:
    """`distance` lies between the price paid and the stop. Beside the jumps of the price a stop may be tiny:
    then `unit` counts, so that a jump is a few R and not hundreds."""
    result = min(gain / max(distance, unit), MOST_R)
    return result if keeps_mark else min(result, 0.0)


class TapeEntry(NamedTuple):
    key: UUID
    rank_r: float | None
    """None when the signal is filled, its result when it closes."""


class Purses:
    """One for each share, after every signal has given up `less_r`."""

    __slots__ = ("_free", "_less_r", "_seen", "_stakes")

    def __init__(self, less_r: float = 0.0) -> None:
        self._less_r = less_r
        self._free = [1.0] * len(SHARES)
        self._stakes: dict[UUID, list[float]] = {}
        self._seen = 0

    def follow(self, tape: list[TapeEntry]) -> None:
        for key, result in tape[self._seen :]:
            if result is None:
                self.fill(key)
            else:
                self.close(key, result)
        self._seen = len(tape)

    def fill(self, key: UUID) -> None:
        # A purse that owes more than it holds stakes nothing.
        stakes = [share * held if held > 0 else 0.0 for share, held in zip(SHARES, self._free, strict=False)]
        self._stakes[key] = stakes
        self._free = [held - RESERVE_R * stake for held, stake in zip(self._free, stakes, strict=False)]

    def close(self, key: UUID, result: float) -> None:
        back = RESERVE_R + result - self._less_r
        free = [held + stake * back for held, stake in zip(self._free, self._stakes.pop(key), strict=False)]
        self._free = free if max(free) < MOST_HELD else [min(held, MOST_HELD) for held in free]

    def worth(self, marks: Marks) -> list[float]:
        held = self._free
        for key, stakes in self._stakes.items():
            back = RESERVE_R + marks[key] - self._less_r
            held = [each + stake * back for each, stake in zip(held, stakes, strict=False)]
        return [max(each, 0.0) for each in held]

    @property
    def secured(self) -> float:
        """What they hold on average if all that is open is lost."""
        return mean_of(self._free)


def mean_of(held: Iterable[float]) -> float:
    return sum(each for each in held if each > 0) / len(SHARES)


class Standing(NamedTuple):
    """Of a publisher now."""

    purses: tuple[float, ...]
    """In the order of SHARES."""
    evidence: float
    highest: float
    """The most evidence there ever was after a close, with what was open counted as lost."""
    at_least_r: float | None
    """The most that each result could be lower while the evidence stands; None if it does not stand."""

    @property
    def is_told_from_luck(self) -> bool:
        return bool(self.at_least_r)

    @property
    def is_proven(self) -> bool:
        return self.highest >= PROVEN and self.evidence >= STANDS


class Rank:
    """The signals of one publisher in one list, entered in the order of events."""

    def __init__(self) -> None:
        self.highest = 1.0
        self._purses = Purses()
        self._tape: list[TapeEntry] = []
        self._lowered: dict[int, Purses] = {}
        """By the steps that each result is lowered by; kept, because the next search asks for the same."""

    def fill(self, key: UUID) -> None:
        self._tape.append(TapeEntry(key, None))
        self._purses.fill(key)

    def close(self, key: UUID, result: float) -> None:
        self._tape.append(TapeEntry(key, result))
        self._purses.close(key, result)
        self.highest = max(self.highest, self._purses.secured)

    def read(self, marks: Marks) -> Standing:
        purses = self._purses.worth(marks)
        evidence = mean_of(purses)
        at_least_r = self._search(marks) / STEPS_IN_R if evidence >= STANDS else None
        return Standing(tuple(purses), evidence, self.highest, at_least_r)

    def _search(self, marks: Marks) -> int:
        def falls(steps: int) -> bool:
            lowered = self._lowered.setdefault(steps, Purses(steps / STEPS_IN_R))
            lowered.follow(self._tape)
            return mean_of(lowered.worth(marks)) < STANDS

        return bisect_left(range(1, MOST_R * STEPS_IN_R), True, key=falls)
