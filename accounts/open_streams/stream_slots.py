"""The stream slots of this process: each caller has as many as they are allowed. In Redis each is named
"process number opened_at path", which the script takes apart as well."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.background import BackgroundLoop, TimeoutInSlices
from core.deadlines import patient
from core.fault_log import LastingFault

# What pages also show of an open stream: which key opened it, from where, and what it follows. No decision
# depends on it, so it is stored apart from the slots: each process writes its changes together, at most once
# a second, and a page may find nothing yet.
logger = logging.getLogger(__name__)
AWAY = (RedisError, OSError)
MOST_SYMBOLS = 30


class StreamDetails(msgspec.Struct, frozen=True, array_like=True):
    key_id: int
    """0 for our own pages."""
    address: str
    agent: str
    """What its client calls itself."""
    symbols: list[str]
    """The first of them; ["*"] for all."""
    more: int = 0


Describe = Callable[[], StreamDetails]


class Described(Protocol):
    """The slots of this process."""

    def numbers(self) -> Iterable[int]: ...

    def describe(self, number: int) -> StreamDetails | None: ...


class SharedDetails:
    """A hash in Redis for each process, by the numbers of its slots. It expires with the process."""

    WRITE_EVERY_S = 1.0
    RENEW_EVERY_S = 60.0
    LASTS_S = 300
    MOST_AT_ONCE = 200
    PATIENCE_S = patient(0.5)

    def __init__(self, redis: Redis, root: str, process: str, here: Described) -> None:
        self._redis, self._root, self._process, self._here = redis, root, process, here
        self._changed: set[int] = set()
        self._gone: set[int] = set()
        self._renew_at = 0.0
        self.loop = BackgroundLoop(
            "stream details",
            self.write,
            fault=LastingFault(logger, "What streams follow is not shown", logging.INFO),
            broke="What streams follow could not be written, trying again",
            passing=AWAY,
            before=self.WRITE_EVERY_S,
        )

    def note(self, number: int) -> None:
        self._changed.add(number)

    def forget(self, number: int) -> None:
        self._changed.discard(number)
        self._gone.add(number)

    async def write(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._renew_at:
            self._renew_at = now + self.RENEW_EVERY_S
            await self._renew()
        while self._changed or self._gone:
            await self._write_some()

    async def _renew(self) -> None:
        """Redis may have lost all of it."""
        async with TimeoutInSlices(self.PATIENCE_S):
            is_there = await self._redis.expire(self._key(self._process), self.LASTS_S)
        if not is_there:
            self._changed.update(self._here.numbers())

    async def _write_some(self) -> None:
        changed = list(itertools.islice(self._changed, self.MOST_AT_ONCE))
        gone = list(itertools.islice(self._gone, self.MOST_AT_ONCE))
        described = {number: self._here.describe(number) for number in changed}
        fields = {str(number): msgspec.msgpack.encode(each) for number, each in described.items() if each}
        # Removed first, so that a change during the call is written again.
        self._changed.difference_update(changed)
        self._gone.difference_update(gone)
        try:
            await self._send(fields, gone)
        except BaseException:
            self._changed.update(changed)
            self._gone.update(gone)
            raise

    async def _send(self, fields: dict[str, bytes], gone: list[int]) -> None:
        key = self._key(self._process)
        async with TimeoutInSlices(self.PATIENCE_S), self._redis.pipeline(transaction=False) as pipe:
            if fields:
                pipe.hset(key, mapping=fields)
                pipe.expire(key, self.LASTS_S)
            if gone:
                pipe.hdel(key, *map(str, gone))
            await pipe.execute()

    async def of(self, slots: Iterable[tuple[str, int]]) -> list[StreamDetails | None]:
        """By the processes and numbers of slots, in their order."""
        asked = list(slots)
        if not asked:
            return []
        found: list[bytes | None] = [None] * len(asked)
        with contextlib.suppress(*AWAY):
            async with TimeoutInSlices(self.PATIENCE_S), self._redis.pipeline(transaction=False) as pipe:
                for process, number in asked:
                    pipe.hget(self._key(process), str(number))
                found = await pipe.execute()
        return [each and msgspec.msgpack.decode(each, type=StreamDetails) for each in found]  # type: ignore[misc]

    async def stop(self) -> None:
        await self.loop.stop()
        with contextlib.suppress(*AWAY):
            async with TimeoutInSlices(self.PATIENCE_S):
                await self._redis.delete(self._key(self._process))

    def _key(self, process: str) -> str:
        return f"{self._root}details:{process}"


EndCode = Literal["taken_over", "stream_closed", "stream_limit_exceeded", "restarting"]
OnEnd = Callable[[EndCode], None]
_numbers = itertools.count(1)


class OpenStream(msgspec.Struct, frozen=True):
    """An authenticated open socket."""

    counted_under: str
    """The owner: an account's keys, or its pages (`Caller.counted_under`)."""
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
        """Its callbacks are not called afterwards. Releasing twice is harmless."""
        self._on_end = self._describe = None
        self._leave(self)

    def end(self, code: EndCode) -> None:
        # In a later turn of the loop: by then the claim has returned the slot, and a fault stays isolated.
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
