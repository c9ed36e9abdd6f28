"""Frames to many at once, and how long their writes took.

A busy process spends nearly all of its time in the kernel, which fills the caches: after each frame the
interpreter would have to get back into them. So everything is prepared before the first frame leaves, and no
Python runs between two frames. Where they go straight to the kernel, only the socket's number is read."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, repeat
from operator import call, length_hint
from typing import NamedTuple, Protocol

from core.times import MINUTE_MS
from serving.websocket.connection import NO_DESCRIPTOR

from .subscribers import Audience, EncodedGroup, Group, Subscriber, Write

# Writes to many sockets in one call of the kernel. Linux takes a list of writes (`io_submit`), and has done
# or refused each of them when the call returns, because none of these sockets blocks. That saves a call of
# `send` for each: a fifth of what a short frame costs. Where there are no such lists, `send` is called for
# each. What is submitted is as `struct iocb`, and what comes back as `struct io_event`, in linux/aio_abi.h.
# In one call; what is written for them stays in the nearest cache.
MOST = 256

# For fewer the two calls of a list cost more than they save.
FEWEST = 4


class SystemCalls(NamedTuple):
    """Their numbers: nothing that Python comes with knows them by name."""

    setup: int
    destroy: int
    getevents: int
    submit: int


SYSTEM_CALLS = {"x86_64": SystemCalls(206, 207, 208, 209), "aarch64": SystemCalls(0, 1, 4, 2)}
PWRITE = 1
WORD_BYTES, WRITE_WORDS, EVENT_WORDS = 8, 8, 4
# In a write the words of its frame; its operation and its socket are halves of a word.
ADDRESS, SIZE = 3, 4
OPERATION, DESCRIPTOR = 4, 5
# In an event the word that says how much the kernel took; negative where it took nothing.
RESULT = 2

# `os.write` and `socket.send` release the interpreter's lock at each call, and wait for it 5 ms of each 10
# while another thread is busy. A call through PyDLL keeps the lock.
_libc = ctypes.PyDLL(None)
_libc.syscall.restype = ctypes.c_long

Shortfall = list[tuple[int, int]]
"""The places of what the kernel did not take whole, each with how much it took: nothing where there was no
room, or where the socket is broken."""


class Writes(Protocol):
    def to_all(self, descriptors: array[int], data: bytes) -> Shortfall: ...
    def to_each(self, descriptors: Sequence[int], frames: Sequence[bytes]) -> Shortfall: ...


class SingleWrites:
    def to_all(self, descriptors: array[int], data: bytes) -> Shortfall:
        number = len(descriptors)
        return self.to_each(descriptors, [data] * number)

    def to_each(self, descriptors: Sequence[int], frames: Sequence[bytes]) -> Shortfall:
        sizes = list(map(len, frames))
        taken = list(map(_libc.send, descriptors, frames, sizes, repeat(0)))
        return [] if taken == sizes else shortfall(taken, sizes)


class ListsRefused(OSError):
    """This system takes no lists of writes."""


class ListedWrites:
    """Of one thread: it fills its list and submits it before another could."""

    def __init__(self, calls: SystemCalls) -> None:
        self._call, self._context = _libc.syscall, ctypes.c_ulong()
        setup, self._destroy, self._getevents, self._submit = map(ctypes.c_long, calls)
        if self._call(setup, ctypes.c_long(MOST), ctypes.byref(self._context)):
            raise ListsRefused
        writes = array("q", bytes(WORD_BYTES * WRITE_WORDS * MOST))
        self._words = memoryview(writes)
        self._halves = self._words.cast("B").cast("i")
        self._halves[OPERATION :: 2 * WRITE_WORDS] = array("i", [PWRITE]) * MOST
        start, end = writes.buffer_info()[0], WORD_BYTES * WRITE_WORDS * MOST
        self._list = array("q", range(start, start + end, WORD_BYTES * WRITE_WORDS))
        self._events = array("q", bytes(WORD_BYTES * EVENT_WORDS * MOST))
        self._list_at = ctypes.c_void_p(self._list.buffer_info()[0])
        self._events_at = ctypes.c_void_p(self._events.buffer_info()[0])

    def __del__(self) -> None:
        if self._context:
            self._call(self._destroy, self._context)

    def to_all(self, descriptors: array[int], data: bytes) -> Shortfall:
        addresses, sizes = array("q", [address_of(data)]), array("q", [len(data)])
        number = len(descriptors)
        return self._write(descriptors, addresses * number, sizes * number)

    def to_each(self, descriptors: Sequence[int], frames: Sequence[bytes]) -> Shortfall:
        sizes, joined = array("q", map(len, frames)), b"".join(frames)
        addresses = array("q", accumulate(sizes[:-1], initial=address_of(joined)))
        return self._write(array("i", descriptors), addresses, sizes)

    def _write(self, descriptors: array[int], addresses: array[int], sizes: array[int]) -> Shortfall:
        taken, number = array("q"), len(sizes)
        while (start := len(taken)) < number:
            some = slice(start, start + MOST)
            taken += self._submit_some(descriptors[some], addresses[some], sizes[some])
        return [] if taken == sizes else shortfall(taken, sizes)

    def _submit_some(self, descriptors: array[int], addresses: array[int], sizes: array[int]) -> array[int]:
        """How much the kernel took of each, up to the first whose socket is none."""
        number = len(sizes)
        self._halves[DESCRIPTOR : 2 * WRITE_WORDS * number : 2 * WRITE_WORDS] = descriptors
        self._words[ADDRESS : WRITE_WORDS * number : WRITE_WORDS] = addresses
        self._words[SIZE : WRITE_WORDS * number : WRITE_WORDS] = sizes
        done = max(0, self._call(self._submit, self._context, ctypes.c_long(number), self._list_at))
        if done:
            # They are over, in their order, so this does not wait.
            each = ctypes.c_long(done)
            if self._call(self._getevents, self._context, each, each, self._events_at, None) != done:
                raise OSError("The kernel does not say what became of a list of writes.")
        taken = self._events[RESULT : EVENT_WORDS * done : EVENT_WORDS]
        if done < number:
            taken.append(-1)
        return taken


def shortfall(taken: Sequence[int], sizes: Sequence[int]) -> Shortfall:
    each = enumerate(zip(taken, sizes, strict=True))
    return [(place, max(0, some)) for place, (some, size) in each if some < size]


def address_of(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


SINGLE = SingleWrites()


class _OfThread(threading.local):
    writes: Writes | None = None


_own = _OfThread()
# A child has its parent's memory, and not what the kernel keeps for it.
os.register_at_fork(after_in_child=lambda: _own.__dict__.clear())


def writes_to(number: int) -> Writes:
    """How so many sockets are best written to."""
    if number < FEWEST:
        return SINGLE
    if _own.writes is None:
        _own.writes = choose(platform.system(), platform.machine())
    return _own.writes


def choose(system: str, machine: str) -> Writes:
    calls = SYSTEM_CALLS.get(machine) if system == "Linux" else None
    try:
        return SINGLE if calls is None else ListedWrites(calls)
    except ListsRefused:
        return SINGLE


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
        short = writes_to(len(self.frames)).to_each(self.descriptors, self.frames)
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
    short = writes_to(encoded.size).to_all(encoded.descriptors, data)
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
