"""Frames to many at once, and how long their writes took.

A busy process spends nearly all of its time in the kernel, which fills the caches: after each frame the
interpreter would have to get back into them. So everything is prepared before the first frame leaves, and no
Python runs between two frames. Where they go straight to the kernel, only the socket's number is read."""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, repeat
from operator import call, length_hint
from typing import NamedTuple

from core.times import MINUTE_MS
from serving.websocket.connection import NO_DESCRIPTOR

from .subscribers import Audience, EncodedGroup, Group, Subscriber, Write

# `os.write` and `socket.send` release the interpreter's lock at each call, and wait for it 5 ms of each 10
# while another thread is busy. A call through PyDLL keeps the lock.
_send = ctypes.PyDLL(None).send
_send.restype = ctypes.c_ssize_t

Shortfall = list[tuple[int, int]]
"""The places of what the kernel did not take whole, each with how much it took: nothing where there was no
room, or where the socket is broken."""


def send_each(descriptors: Sequence[int], frames: Sequence[bytes]) -> Shortfall:
    """To sockets that do not block."""
    sizes = list(map(len, frames))
    taken = list(map(_send, descriptors, frames, sizes, repeat(0)))
    if taken == sizes:
        return []
    each = enumerate(zip(taken, sizes, strict=True))
    return [(place, max(0, some)) for place, (some, size) in each if some < size]


PendingFrame = tuple[Audience, bytes]
UnsentTail = tuple[Subscriber, bytes]


class FlushPlan(NamedTuple):
    """The frames that are due, joined for each group. Groups of one subscriber are all served in one call."""

    alone: list[Group]
    descriptors: list[int]
    frames: list[bytes]
    shared: list[tuple[EncodedGroup, bytes]]
    others: list[Subscriber]
    """Subscribers whose frames do not go straight to the kernel; `their_frames` are due to them."""
    their_frames: list[bytes]
    number: int
    """Of all frames to all subscribers."""

    @classmethod
    def of(cls, pending: Iterable[PendingFrame], now: float) -> FlushPlan:
        alone, descriptors, frames, shared, number, join = [], [], [], [], 0, b"".join
        others: list[Subscriber] = []
        their_frames: list[bytes] = []
        for group in assign_to_groups(pending):
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
        short = send_each(self.descriptors, self.frames)
        return [
            (next(iter(self.alone[place].subscribers)), self.frames[place][taken:]) for place, taken in short
        ]


def assign_to_groups(pending: Iterable[PendingFrame]) -> list[Group]:
    """Leaves the frames with the groups that are due them, and returns those groups."""
    touched: list[Group] = []
    for audience, data in pending:
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
    """Sends straight to the kernel. Returns what it did not take."""
    short = send_each(encoded.descriptors, [data] * len(encoded.descriptors))
    return [(encoded.direct[place], data[taken:]) for place, taken in short]


def write_each(writes: Sequence[Write], frames: Iterable[bytes], on_broken: Callable[[int], None]) -> None:
    """`for write, data in zip(writes, frames): write(data)`, in C. Where one fails, `on_broken` is called
    with its index while the exception is handled, and the rest go on."""
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

# Bounds how many different numbers a minute can have, whatever a clock does.
LONGEST_MS = 60_000

# A Counter would take three times as long.
Counts = defaultdict[int, int]


class WriteLatency:
    """Counts each whole millisecond, minute by minute, so that nothing is estimated."""

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
        """The clocks of two machines may differ a little, so negative times count as 0."""
        if not self._start_ms <= now_ms < self._end_ms:
            self._turn(now_ms)
        took_ms = now_ms - since_ms
        if not 0 <= took_ms <= LONGEST_MS:
            took_ms = 0 if took_ms < 0 else LONGEST_MS
        self._this[took_ms] += 1

    def quantiles(self, now_ms: int) -> dict[float, int]:
        """Of the last full minute: the smallest value that so large a share does not exceed. Empty if nothing
        was measured."""
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
