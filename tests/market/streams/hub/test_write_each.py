from __future__ import annotations

from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.streams.hub.delivery import write_each
from market.streams.hub.subscribers import Write


class Writes:
    """Of several connections, of which some are broken."""

    def __init__(self, number: int, broken: set[int]) -> None:
        self.broken, self.found = broken, list[int]()
        self.taken: list[list[bytes]] = [[] for _ in range(number)]
        self.each: list[Write] = [self._of(index) for index in range(number)]

    def _of(self, index: int) -> Write:
        def write(data: bytes) -> None:
            if index in self.broken:
                raise OSError(32, "Broken pipe")
            self.taken[index].append(data)

        return write


@given(st.sets(st.integers(0, 7)))
def test_each_gets_its_own_and_the_broken_are_named(broken: set[int]) -> None:
    writes = Writes(8, broken)
    frames = [b"%d" % index for index in range(8)]

    write_each(writes.each, frames, writes.found.append)

    assert writes.found == sorted(broken)
    assert writes.taken == [[] if index in broken else [frames[index]] for index in range(8)]


def test_one_frame_may_be_for_all() -> None:
    writes = Writes(3, {0, 2})

    write_each(writes.each, repeat(b"a"), writes.found.append)

    assert (writes.found, writes.taken) == ([0, 2], [[], [b"a"], []])


def test_what_stops_the_process_is_not_held_back() -> None:
    def stop(data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_each([stop], [b"a"], Writes(1, set()).found.append)
