"""The script decides for all processes what MemorySlots decides for one."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from redis import Redis

from accounts.open_streams.redis_slots import SCRIPT
from accounts.open_streams.stream_slots import MemorySlots, OpenStream, Slot, slot_name, slot_number

from .claims import MARKET, SIGNALS, ignore

CALLERS = ("1", "pages:1")


class Claim(NamedTuple):
    caller: str
    path: str
    limit: int
    takeover: bool


class Release(NamedTuple):
    number: int
    """Which of the claims so far."""


class Enforce(NamedTuple):
    caller: str
    limit: int


callers = st.sampled_from(("1", "1", "1", "pages:1"))
limits = st.sampled_from((3, 3, 2, 4, 1, 0))
claims = st.builds(Claim, callers, st.sampled_from([MARKET, SIGNALS]), limits, st.booleans())
releases, enforcings = st.builds(Release, st.integers(0, 20)), st.builds(Enforce, callers, limits)
steps = st.lists(st.one_of(claims, claims, claims, claims, releases, enforcings), min_size=12, max_size=40)


class Twins:
    """Each step taken in memory at once, and noted for one call of the script."""

    def __init__(self) -> None:
        self.memory, self.claims = MemorySlots(), list[Slot]()
        self.ended: dict[int, str] = {}
        self.asks, self.expected = list[tuple[Any, ...]](), list[Any]()

    def take(self, step: Claim | Release | Enforce) -> None:
        if isinstance(step, Claim):
            self.claim(step)
        elif isinstance(step, Enforce):
            self.memory.enforce(*step)
            self.note(("enforce", *step), 0)
        elif self.claims:
            slot = self.claims[step.number % len(self.claims)]
            self.memory.remove(slot.number)
            self.note(("release", slot_name(slot, "me"), slot.stream.counted_under), 0)
        for caller in CALLERS:
            self.note(("of", caller), [slot.number for slot in self.memory.of(caller)])

    def claim(self, step: Claim) -> None:
        stream = OpenStream(step.caller, step.path, 1.0)
        slot = Slot(stream, step.limit, lambda code: self.ended.update({slot.number: code}), ignore)
        self.claims.append(slot)
        refusal = self.memory.claim(slot, takeover=step.takeover)
        asks = ("claim", slot_name(slot, "me"), step.caller, step.limit, step.takeover)
        self.note(asks, ("admitted",) if refusal is None else ("refused", refusal.open))

    def note(self, asks: tuple[Any, ...], expected: Any) -> None:
        self.asks.append(asks)
        self.expected.append(expected)


def plain(name: str, answer: Any) -> Any:
    if name == "of":
        return [slot_number(slot) for slot in answer]
    if name == "claim":
        return ("admitted",) if answer[0] else ("refused", answer[1])
    return answer


@pytest.fixture(scope="module")
def client(own_redis: str) -> Any:
    with Redis.from_url(own_redis) as connected:
        yield connected


@examples(max_examples=150)
@given(steps)
def test_redis_and_memory_decide_the_same(client: Any, taken: list[Claim | Release | Enforce]) -> None:
    async def take() -> Twins:
        twins = Twins()
        for step in taken:
            twins.take(step)
        await asyncio.sleep(0)
        return twins

    twins = asyncio.run(take())
    client.flushall()
    script = client.register_script(SCRIPT)
    # It beats first: who is not known has to tell what it has before it may claim.
    for asks in ([("beat",)], twins.asks):
        packed = [msgspec.msgpack.encode(part) for part in ([], asks)]
        answers, ended, _ = msgspec.msgpack.decode(script(keys=["streams:"], args=["me", *packed]))
    decided = [plain(asks[0], answer) for asks, answer in zip(twins.asks, answers, strict=True)]
    assert decided == twins.expected
    assert {slot_number(name): code for name, code in ended} == twins.ended
