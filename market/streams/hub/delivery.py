"""Frames to many at once, and how long their writes took.

Nearly all of a busy process's time is spent in the kernel, which has the caches to itself: after each frame
the interpreter would have to come back into them. So all is prepared before the first frame leaves, and
between two of them runs no Python. Where frames go straight to the kernel, nothing of a connection but its
number is looked at.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, repeat
from operator import call, length_hint
from typing import NamedTuple

from serving.websocket.connection import NO_DESCRIPTOR

from .subscribers import Audience, EncodedGroup, Group, Subscriber, Write

PendingFrame = tuple[Audience, bytes]
UnsentTail = tuple[Subscriber, bytes]

# `os.write` and `socket.send` let go of the interpreter at each call: while another thread is busy, many of
# them wait for it 5 ms of each 10. A call through PyDLL keeps it. None of these sockets blocks.
_send = ctypes.PyDLL(None).send


class FlushPlan(NamedTuple):
    """What is owed, joined for each group. Groups of one subscriber are sent theirs in one go."""

    alone: list[Group]
    descriptors: list[int]
    frames: list[bytes]
    shared: list[tuple[EncodedGroup, bytes]]
    others: list[Subscriber]
    """To whom nothing can go straight, and in `their_frames` what they are due."""
    their_frames: list[bytes]
    number: int
    """Of all frames, for everybody."""

    @classmethod
    def of(cls, owed: Iterable[PendingFrame], now: float) -> FlushPlan:
        alone, descriptors, frames, shared, number, join = [], [], [], [], 0, b"".join
        others: list[Subscriber] = []
        their_frames: list[bytes] = []
        for group in owe(owed):
            data, more = group.due, group.more
            group.due, group.wrote_at = b"", now
            count = 1
            if more is not None:
                data, count, group.more = data + join(more), 1 + len(more), None
            descriptor = group.descriptor
            if descriptor == NO_DESCRIPTOR:
                encoded = group.encoded or group.encode()
                count *= encoded.size
                if encoded.direct:
                    shared.append((encoded, data))
                others += encoded.others
                their_frames += [data] * len(encoded.others)
            else:
                alone.append(group)
                descriptors.append(descriptor)
                frames.append(data)
            number += count
        return cls(alone, descriptors, frames, shared, others, their_frames, number)

    def send_alone(self) -> list[UnsentTail]:
        """Returns what the kernel did not take."""
        sizes = list(map(len, self.frames))
        sent = send_each(self.descriptors, self.frames, sizes)
        if sent == sizes:
            return []
        each = zip(self.alone, self.frames, sent, strict=True)
        return [
            (next(iter(group.subscribers)), data[max(taken, 0) :])
            for group, data, taken in each
            if taken < len(data)
        ]


def owe(owed: Iterable[PendingFrame]) -> list[Group]:
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


def send_to_all(encoded: EncodedGroup, data: bytes) -> list[UnsentTail]:
    """To whom it can go straight. Returns what the kernel did not take."""
    size = len(data)
    sent = send_each(encoded.descriptors, repeat(data), repeat(size))
    if sent.count(size) == len(sent):
        return []
    each = zip(encoded.direct, sent, strict=True)
    return [(subscriber, data[max(taken, 0) :]) for subscriber, taken in each if taken < size]


def send_each(descriptors: Iterable[int], frames: Iterable[bytes], sizes: Iterable[int]) -> list[int]:
    """How much of each the kernel took; -1 where nothing: there is no room, or the socket is broken."""
    return list(map(_send, descriptors, frames, sizes, repeat(0)))


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


QUANTILES = (0.5, 0.95, 0.99)
MINUTE_MS = 60_000

# So that a minute is at most so many numbers, whatever a clock does.
LONGEST_MS = 60_000

# A Counter would take three times as long for each.
Counts = defaultdict[int, int]


class WriteLatency:
    """Minute by minute. Whole milliseconds are counted as they are, so nothing is estimated."""

    def __init__(self) -> None:
        self._start_ms = self._end_ms = 0
        self._count = self._sum_ms = 0
        """Before this minute."""
        self._this, self._last = Counts(int), Counts(int)

    @property
    def count(self) -> int:
        """Since the start."""
        return self._count + sum(self._this.values())

    @property
    def sum_ms(self) -> int:
        return self._sum_ms + sum(took_ms * number for took_ms, number in self._this.items())

    def add(self, since_ms: int, now_ms: int) -> None:
        """Clocks of two machines may differ a little: nothing took less than no time."""
        if not self._start_ms <= now_ms < self._end_ms:
            self._turn(now_ms)
        took_ms = now_ms - since_ms
        if not 0 <= took_ms <= LONGEST_MS:
            took_ms = 0 if took_ms < 0 else LONGEST_MS
        self._this[took_ms] += 1

    def quantiles(self, now_ms: int) -> dict[float, int]:
        """Of the last full minute, the smallest value that so large a share of all does not exceed; empty
        where nothing was measured."""
        if not self._start_ms <= now_ms < self._end_ms:
            self._turn(now_ms)
        counts = sorted(self._last.items())
        upto = list(accumulate(number for _, number in counts))
        return {
            share: next(
                took_ms
                for (took_ms, _), number in zip(counts, upto, strict=True)
                if number >= share * upto[-1]
            )
            for share in QUANTILES
            if counts
        }

    def _turn(self, now_ms: int) -> None:
        self._count, self._sum_ms = self.count, self.sum_ms
        start_ms = now_ms - now_ms % MINUTE_MS
        self._last = self._this if start_ms == self._end_ms else Counts(int)
        self._this = Counts(int)
        self._start_ms, self._end_ms = start_ms, start_ms + MINUTE_MS
