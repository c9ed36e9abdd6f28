"""The stream slots of this process: each caller has as many as they are allowed. In Redis each is named
"process number opened_at path", which the script takes apart as well."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from .details import Describe, StreamDetails

EndCode = Literal["taken_over", "stream_closed", "stream_limit_exceeded", "restarting"]
OnEnd = Callable[[EndCode], None]
_numbers = itertools.count(1)


class OpenStream(msgspec.Struct, frozen=True):
    """An authenticated open socket."""

    counted_under: str
    """Whose it is: the keys of an account, or its pages (`Caller.counted_under`)."""
    path: str
    opened_at: float
    details: StreamDetails | None = None
    """Where they are known yet."""


class SlotRefusal(msgspec.Struct, frozen=True):
    limit: int
    open: int


class Slot:
    """A stream's place among those counted with it, until it is released or ends."""

    __slots__ = ("_describe", "_leave", "_on_end", "goes_on", "limit", "number", "order", "stream")

    def __init__(
        self,
        stream: OpenStream,
        limit: int,
        on_end: OnEnd,
        leave: Callable[[Slot], None],
        describe: Describe | None = None,
    ) -> None:
        self.number = next(_numbers)
        self.stream, self.limit = stream, limit
        self.order = time.time_ns() // 1000
        """Its place by age among those counted with it. Where Redis counts, it comes from Redis."""
        self.goes_on = False
        """Whether its client can continue elsewhere without missing anything."""
        self._on_end: OnEnd | None = on_end
        self._leave = leave
        self._describe = describe

    def details(self) -> StreamDetails | None:
        return None if self._describe is None else self._describe()

    def shown(self) -> OpenStream:
        details = self.details()
        return self.stream if details is None else msgspec.structs.replace(self.stream, details=details)

    def release(self) -> None:
        """Nothing is heard of it any more. Twice is harmless."""
        self._on_end = self._describe = None
        self._leave(self)

    def end(self, code: EndCode) -> None:
        # In a turn of its own: by then the claim has returned the slot, and a fault there stays there.
        asyncio.get_running_loop().call_soon(self._say, code)

    def _say(self, code: EndCode) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(code)


class MemorySlots:
    """Decides as the script does for all processes; oldest first."""

    def __init__(self) -> None:
        self._all: dict[int, Slot] = {}
        self._by_caller: dict[str, dict[int, Slot]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, number: int) -> bool:
        return number in self._all

    def numbers(self) -> Iterable[int]:
        return list(self._all)

    def describe(self, number: int) -> StreamDetails | None:
        slot = self._all.get(number)
        return None if slot is None else slot.details()

    def all(self) -> Iterable[Slot]:
        return self._all.values()

    def of(self, counted_under: str) -> list[Slot]:
        return list(self._by_caller.get(counted_under, {}).values())

    def callers(self) -> list[str]:
        return list(self._by_caller)

    def claim(self, slot: Slot, *, takeover: bool) -> SlotRefusal | None:
        held = self.of(slot.stream.counted_under)
        if len(held) >= slot.limit:
            if not takeover or slot.limit < 1:
                return SlotRefusal(slot.limit, len(held))
            same_path = (other for other in held if other.stream.path == slot.stream.path)
            self.end(next(same_path, held[0]).number, "taken_over")
        self.put(slot)
        return None

    def put(self, slot: Slot) -> None:
        self._all[slot.number] = slot
        self._by_caller.setdefault(slot.stream.counted_under, {})[slot.number] = slot

    def remove(self, number: int) -> Slot | None:
        slot = self._all.pop(number, None)
        if slot is not None:
            held = self._by_caller[slot.stream.counted_under]
            del held[number]
            if not held:
                del self._by_caller[slot.stream.counted_under]
        return slot

    def release(self, slot: Slot) -> None:
        self.remove(slot.number)

    def end(self, number: int, code: EndCode) -> None:
        slot = self.remove(number)
        if slot is not None:
            slot.end(code)

    def enforce(self, counted_under: str, limit: int) -> None:
        """The newest beyond the limit end."""
        for slot in self.of(counted_under)[limit:]:
            self.end(slot.number, "stream_limit_exceeded")


def slot_name(slot: Slot, process: str) -> str:
    return f"{process} {slot.number} {slot.stream.opened_at:.6f} {slot.stream.path}"


def slot_number(name: str) -> int:
    return int(name.split(" ", 2)[1])


def slot_place(name: str) -> tuple[str, int]:
    """The process that has it, and its number there."""
    process, number, _ = name.split(" ", 2)
    return process, int(number)


def read_slot_name(name: str, counted_under: str, details: StreamDetails | None = None) -> OpenStream:
    _, _, opened_at, path = name.split(" ", 3)
    return OpenStream(counted_under, path, float(opened_at), details)
