"""Frames to many at once.

Nearly all of a busy process's time is spent in the kernel, which has the caches to itself: after each write
the interpreter would have to come back into them. So all is prepared before the first write, and between
two writes runs no Python at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import call, length_hint
from typing import NamedTuple

from .groups import Audience, Group, Row, Write

Owed = tuple[Audience, bytes]


class Round(NamedTuple):
    """What is owed, joined for each group. Groups of one seat are written to in one go."""

    alone: list[Group]
    writes: list[Write]
    frames: list[bytes]
    shared: list[tuple[Row, bytes]]
    number: int
    """Of all frames, for everybody."""

    @classmethod
    def of(cls, owed: Iterable[Owed], now: float) -> Round:
        alone, writes, frames, shared, number, join = [], [], [], [], 0, b"".join
        for group in owe(owed):
            data, more = group.due, group.more
            group.due, group.wrote_at = b"", now
            count = 1
            if more is not None:
                data, count, group.more = data + join(more), 1 + len(more), None
            write = group.write
            if write is None:
                row = group.row
                shared.append((row, data))
                count *= len(row.writes)
            else:
                alone.append(group)
                writes.append(write)
                frames.append(data)
            number += count
        return cls(alone, writes, frames, shared, number)


def owe(owed: Iterable[Owed]) -> list[Group]:
    """The groups that are due something, and it lies with them."""
    touched: list[Group] = []
    for audience, data in owed:
        for group in audience.groups:
            if not group.due:
                group.due = data
                touched.append(group)
            elif group.more is None:
                group.more = [data]
            else:
                group.more.append(data)
    return touched


def write_each(writes: Sequence[Write], frames: Iterable[bytes], on_broken: Callable[[int], None]) -> None:
    """`for write, data in zip(writes, frames): write(data)`, in C. `on_broken` is told which one failed while
    its exception is handled; the others get theirs."""
    left = iter(writes)
    calls = map(call, left, frames)
    while True:
        try:
            deque(calls, maxlen=0)
        except Exception:  # noqa: BLE001 - whatever is wrong with one connection ends that one alone
            on_broken(len(writes) - length_hint(left) - 1)
        else:
            return
