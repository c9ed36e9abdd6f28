"""Frames to many at once.

Nearly all of a busy process's time is spent in the kernel, which has the caches to itself: after each frame
the interpreter would have to come back into them. So all is prepared before the first frame leaves, and
between two of them runs no Python. Where frames go straight to the kernel, nothing of a connection but its
number is looked at.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
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
