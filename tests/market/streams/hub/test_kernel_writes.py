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

import pytest

from market.streams.hub.kernel_writes import (
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
        for pair in self._pairs:
            for end in pair:
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
        for pair in self._pairs:
            for end in pair:
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


def test_this_machine_takes_lists() -> None:
    assert isinstance(writes_to(FEWEST), ListedWrites)


@pytest.mark.parametrize("number", [1, 10, MOST, MOST + 1, 2 * MOST + 3])
def test_each_socket_gets_its_own(writes: Writes, pairs: Callable[[int], Pairs], number: int) -> None:
    many = pairs(number)
    frames = [b"%d" % place * (place + 1) for place in range(number)]

    assert writes.to_each(many.descriptors, frames) == []
    assert [many.heard(place) for place in range(number)] == frames


@pytest.mark.parametrize("number", [1, 10, MOST + 1])
def test_all_sockets_get_the_same(writes: Writes, pairs: Callable[[int], Pairs], number: int) -> None:
    many = pairs(number)

    assert writes.to_all(many.descriptors, b"the same") == []
    assert [many.heard(place) for place in range(number)] == [b"the same"] * number


def test_writes_follow_each_other(writes: Writes, pairs: Callable[[int], Pairs]) -> None:
    many = pairs(5)
    for number in range(50):
        writes.to_each(many.descriptors, [b"%d/%d " % (place, number) for place in range(5)])
        writes.to_all(many.descriptors, b"%d " % number)

    for place in range(5):
        assert many.heard(place) == b"".join(b"%d/%d %d " % (place, number, number) for number in range(50))


def test_full_and_broken_sockets_are_told_and_the_others_are_served(
    writes: Writes, pairs: Callable[[int], Pairs]
) -> None:
    many = pairs(6)
    many.fill(1)
    many.break_off(4)

    assert writes.to_all(many.descriptors, b"abc") == [(1, 0), (4, 0)]
    assert [many.heard(place) for place in (0, 2, 3, 5)] == [b"abc"] * 4


def test_numbers_that_are_no_sockets_are_told_and_the_others_are_served(
    writes: Writes, pairs: Callable[[int], Pairs]
) -> None:
    many = pairs(MOST + 10)
    descriptors = many.descriptors
    none = (0, 7, 8, MOST, MOST + 9)
    for place in none:
        descriptors[place] = 1_000_000

    assert writes.to_all(descriptors, b"abc") == [(place, 0) for place in none]
    served = [place for place in range(len(descriptors)) if place not in none]
    assert [many.heard(place) for place in served] == [b"abc"] * len(served)


def test_what_is_longer_than_the_room_is_taken_in_part(writes: Writes, pairs: Callable[[int], Pairs]) -> None:
    many, long = pairs(4), os.urandom(4_000_000)
    ((place, taken),) = writes.to_each(many.descriptors, [b"a", b"b", long, b"c"])

    assert (place, many.heard(2)) == (2, long[:taken])
    assert 0 < taken < len(long)


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
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
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

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


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Linux", "riscv64")])
def test_others_write_one_by_one(system: str, machine: str) -> None:
    assert choose(system, machine) is SINGLE


def test_kernel_that_refuses_lists_is_written_to_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # A call that no kernel has.
    unknown = SystemCalls(9_999, 9_999, 9_999, 9_999)
    with pytest.raises(ListsRefused):
        ListedWrites(unknown)
    monkeypatch.setitem(SYSTEM_CALLS, MACHINE, unknown)
    assert choose("Linux", MACHINE) is SINGLE
