"""Two processes whose streams are far from even, second by second."""

from __future__ import annotations

from collections import deque

import pytest

from accounts.open_streams.redis_slots import A_LOOK, FOR_S, MORE, REST_S, Spread


class World:
    """One process has these streams, the other those. Of each so many that leave, one comes back after some
    seconds."""

    def __init__(
        self, here: int, there: int, one_back_of: int = 0, able: int = 10_000, back_after: int = 0
    ) -> None:
        self.spread = Spread()
        self.here, self.there, self._one_back_of, self._able = here, there, one_back_of, able
        self.asked = 0
        self._now = 0
        self._away = deque([0] * back_after)
        """How many come back in each of the next seconds."""

    def pass_unseen(self, seconds: float) -> None:
        """Redis is away."""
        self._now += round(seconds)

    def pass_seconds(self, seconds: float) -> int:
        """How many were asked in this time."""
        before = self.asked
        for _ in range(round(seconds)):
            leaving = self.spread.surplus(self.here, self._able, [self.there], self._now)
            assert 0 <= leaving <= A_LOOK
            back = 0
            for _ in range(leaving):
                self.asked += 1
                self.here -= 1
                if not self._one_back_of or self.asked % self._one_back_of:
                    self.there += 1
                else:
                    back += 1
            self._away.append(back)
            self.here += self._away.popleft()
            self._now += 1
        return self.asked - before


@pytest.mark.parametrize(
    ("here", "there", "moved"),
    [
        (300, 0, 150),
        (301, 0, 150),
        (151, 50, 50),
        (MORE, 0, 0),
        (MORE + 1, 0, 25),
        (200, 100, 0),
        (100, 300, 0),
    ],
)
def test_half_of_the_difference_moves_after_a_minute(here: int, there: int, moved: int) -> None:
    world = World(here, there)
    assert world.pass_seconds(FOR_S) == 0
    assert world.pass_seconds(REST_S) == moved


def test_minute_begins_again_where_it_was_even_in_between() -> None:
    world = World(300, 0)
    world.pass_seconds(FOR_S - 1)
    world.there = 300
    world.pass_seconds(1)
    world.there = 0
    assert world.pass_seconds(FOR_S) == 0


def test_minute_begins_again_where_the_others_were_not_seen_for_a_while() -> None:
    world = World(300, 0)
    world.pass_seconds(10)
    world.pass_unseen(FOR_S)
    assert world.pass_seconds(FOR_S) == 0


def test_newcomers_elsewhere_count_too() -> None:
    world = World(300, 0)
    world.pass_seconds(FOR_S + 1)
    world.there += 300
    assert world.pass_seconds(FOR_S) == 0


def test_where_half_of_them_come_back_the_rest_is_asked_again() -> None:
    world = World(10_000, 0, one_back_of=2)
    world.pass_seconds(REST_S)
    assert world.here < 2 * world.there


@pytest.mark.parametrize(
    ("here", "there", "able", "asked"),
    [
        (200, 0, 10_000, 100),
        (200, 0, 7, 7),
        # While some are on their way back, it looks even.
        (51, 0, 10_000, 25),
        (102, 50, 10_000, 26),
    ],
)
def test_where_all_come_back_each_is_asked_once_an_hour(here: int, there: int, able: int, asked: int) -> None:
    world = World(here, there, one_back_of=1, able=able, back_after=3)
    assert world.pass_seconds(REST_S) == asked
    assert world.pass_seconds(REST_S) == asked


def test_who_restarts_soon_again_gets_its_streams_again() -> None:
    world = World(300, 0)
    world.pass_seconds(FOR_S * 5)
    world.here, world.there = 300, 0
    assert world.pass_seconds(FOR_S * 3) == 150


def test_process_without_others_keeps_its_streams() -> None:
    spread = Spread()
    assert [spread.surplus(500, 500, [], now) for now in range(200)] == [0] * 200
