"""Frames reach the sockets that they are for, and what did not is returned."""

from __future__ import annotations

import os
import socket
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain

import pytest

from market.streams.hub.delivery import send_each

MANY = 300


class Pairs:
    """Connected sockets: what is written to ours comes out at theirs."""

    def __init__(self, number: int) -> None:
        self._pairs = [socket.socketpair() for _ in range(number)]
        for ends in self._pairs:
            for end in ends:
                end.setblocking(False)

    @property
    def descriptors(self) -> array[int]:
        return array("i", [ours.fileno() for ours, _ in self._pairs])

    def heard(self, place: int) -> bytes:
        parts = []
        with suppress(BlockingIOError):
            while part := self._pairs[place][1].recv(1 << 20):
                parts.append(part)
        return b"".join(parts)

    def fill(self, place: int) -> None:
        with suppress(BlockingIOError):
            while True:
                self._pairs[place][0].send(b"x" * 4096)

    def break_off(self, place: int) -> None:
        self._pairs[place][1].close()

    def close(self) -> None:
        for end in chain(*self._pairs):
            end.close()


@pytest.fixture
def pairs() -> Iterator[Callable[[int], Pairs]]:
    made: list[Pairs] = []

    def make(number: int) -> Pairs:
        made.append(Pairs(number))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("number", [1, MANY])
def test_each_socket_gets_its_own_and_all_get_the_same(pairs: Callable[[int], Pairs], number: int) -> None:
    many = pairs(number)
    frames = [b"%d " % place * (place % 9 + 1) for place in range(number)]

    for text in (b"first ", b"second "):
        assert send_each(many.descriptors, frames) == []
        assert send_each(many.descriptors, [text] * number) == []

    assert [many.heard(place) for place in range(number)] == [
        own + b"first " + own + b"second " for own in frames
    ]


def test_sockets_that_take_nothing_or_not_all_are_told_and_the_others_are_served(
    pairs: Callable[[int], Pairs],
) -> None:
    many, long = pairs(MANY), os.urandom(4_000_000)
    descriptors, frames = many.descriptors, [b"abc"] * MANY
    none = (0, 7, 8, MANY - 1)
    for place in none:
        descriptors[place] = 1_000_000
    many.fill(1)
    many.break_off(4)
    frames[5] = long

    *nothing, (place, taken) = sorted(send_each(descriptors, frames), key=lambda short: short[1])
    assert nothing == [(place, 0) for place in sorted([1, 4, *none])]
    assert (place, many.heard(5)) == (5, long[:taken])
    assert 0 < taken < len(long)
    served = [place for place in range(len(descriptors)) if place not in (1, 4, 5, *none)]
    assert [many.heard(place) for place in served] == [b"abc"] * len(served)
