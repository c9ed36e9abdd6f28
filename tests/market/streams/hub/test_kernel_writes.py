"""Frames reach the sockets that they are for, in lists and one by one, and what did not is told."""

from __future__ import annotations

import os
import platform
import socket
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain

import pytest

from market.streams.hub.delivery import (
    FEWEST,
    MOST,
    SINGLE,
    SYSTEM_CALLS,
    ListedWrites,
    ListsRefused,
    SingleWrites,
    SystemCalls,
    Writes,
    choose,
    writes_to,
)

MACHINE = platform.machine()


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


@pytest.fixture(params=["lists", "one by one"])
def writes(request: pytest.FixtureRequest) -> Writes:
    return ListedWrites(SYSTEM_CALLS[MACHINE]) if request.param == "lists" else SingleWrites()


@pytest.mark.parametrize("number", [1, 10, MOST, MOST + 1, 2 * MOST + 3])
def test_each_socket_gets_its_own_and_all_get_the_same(
    writes: Writes, pairs: Callable[[int], Pairs], number: int
) -> None:
    many = pairs(number)
    frames = [b"%d " % place * (place % 9 + 1) for place in range(number)]

    for text in (b"first ", b"second "):
        assert writes.to_each(many.descriptors, frames) == []
        assert writes.to_all(many.descriptors, text) == []

    assert [many.heard(place) for place in range(number)] == [
        own + b"first " + own + b"second " for own in frames
    ]


def test_sockets_that_take_nothing_or_not_all_are_told_and_the_others_are_served(
    writes: Writes, pairs: Callable[[int], Pairs]
) -> None:
    many, long = pairs(MOST + 10), os.urandom(4_000_000)
    descriptors, frames = many.descriptors, [b"abc"] * (MOST + 10)
    none = (0, 7, 8, MOST, MOST + 9)
    for place in none:
        descriptors[place] = 1_000_000
    many.fill(1)
    many.break_off(4)
    frames[5] = long

    *nothing, (place, taken) = sorted(writes.to_each(descriptors, frames), key=lambda short: short[1])
    assert nothing == [(place, 0) for place in sorted([1, 4, *none])]
    assert (place, many.heard(5)) == (5, long[:taken])
    assert 0 < taken < len(long)
    served = [place for place in range(len(descriptors)) if place not in (1, 4, 5, *none)]
    assert [many.heard(place) for place in served] == [b"abc"] * len(served)


def test_threads_do_not_mix_their_lists(pairs: Callable[[int], Pairs]) -> None:
    number, rounds = FEWEST, 5_000
    many = [pairs(number) for _ in range(3)]
    heard = [[b""] * number for _ in many]

    def write(own: int) -> None:
        frames = [b"%d/%d " % (own, place) for place in range(number)]
        for round_number in range(1, rounds + 1):
            writes_to(number).to_each(many[own].descriptors, frames)
            if round_number % 100 == 0:
                for place in range(number):
                    heard[own][place] += many[own].heard(place)

    threads = [threading.Thread(target=write, args=(own,)) for own in range(len(many))]
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval_s)

    for own in range(len(many)):
        assert heard[own] == [b"%d/%d " % (own, place) * rounds for place in range(number)]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_writes_lists_of_its_own(pairs: Callable[[int], Pairs]) -> None:
    many = pairs(FEWEST)
    writes_to(FEWEST).to_all(many.descriptors, b"parent ")
    child = os.fork()
    if child == 0:
        short = writes_to(FEWEST).to_all(many.descriptors, b"child ")
        os._exit(0 if short == [] else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert many.heard(0) == b"parent child "


def test_other_systems_and_kernels_that_refuse_lists_write_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(writes_to(FEWEST), ListedWrites)
    assert choose("Darwin", "arm64") is choose("Linux", "riscv64") is SINGLE
    # A call that no kernel has.
    unknown = SystemCalls(9_999, 9_999, 9_999, 9_999)
    with pytest.raises(ListsRefused):
        ListedWrites(unknown)
    monkeypatch.setitem(SYSTEM_CALLS, MACHINE, unknown)
    assert choose("Linux", MACHINE) is SINGLE
