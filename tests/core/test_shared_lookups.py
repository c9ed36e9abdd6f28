"""One look for all who ask at once, and for nobody one that began before they asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core.background import SharedLookups


class Looked:
    """What is looked at: a look says how things stood when it began, and ends when it is let."""

    def __init__(self) -> None:
        self.now = self.looks = 0
        self.go = asyncio.Event()
        self.fault: Exception | None = None

    async def look(self) -> int:
        seen, fault = self.now, self.fault
        self.looks += 1
        await self.go.wait()
        if fault is not None:
            raise fault
        return seen


@pytest.fixture
async def looked() -> Looked:
    return Looked()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def asking(
    shared: SharedLookups[str, int], look: Callable[[], Awaitable[int]], what: str = "ada"
) -> asyncio.Task[int]:
    return asyncio.create_task(shared.ask(what, look))


async def test_all_who_ask_during_a_look_share_the_next_and_others_do_not_wait(looked: Looked) -> None:
    shared = SharedLookups[str, int]()
    first = asking(shared, looked.look)
    await turns()
    looked.now = 1
    later = [asking(shared, looked.look) for _ in range(200)]
    await turns()
    assert looked.looks == 1
    others = [asking(shared, looked.look, who) for who in ("bob", "eve")]
    await turns()
    assert looked.looks == 3
    looked.go.set()
    assert await first == 0
    assert set(await asyncio.gather(*later, *others)) == {1}
    assert looked.looks == 4
    # Nothing is kept of what nobody asks any more.
    assert (shared.under_way, shared.next) == ({}, {})


async def test_each_sees_at_least_what_was_true_when_they_asked(looked: Looked) -> None:
    shared, looks = SharedLookups[str, int](), []
    looked.go.set()
    for moment in range(300):
        looked.now = moment
        looks.append((moment, asking(shared, looked.look)))
        if moment % 3 == 0:
            await asyncio.sleep(0)
    assert [moment for moment, asked in looks if await asked < moment] == []
    assert looked.looks < 300


async def test_a_fault_is_told_to_all_who_shared_it_and_to_nobody_later(looked: Looked) -> None:
    shared = SharedLookups[str, int]()
    first = asking(shared, looked.look)
    await turns()
    looked.fault = OSError("away")
    later = [asking(shared, looked.look) for _ in range(3)]
    looked.go.set()
    answers = await asyncio.gather(first, *later, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["0", "away", "away", "away"]
    looked.fault = None
    assert await asking(shared, looked.look) == 0


async def test_who_leaves_takes_nothing_from_the_others(looked: Looked) -> None:
    shared = SharedLookups[str, int]()
    first, stays = asking(shared, looked.look), asking(shared, looked.look)
    await turns()
    first.cancel()
    await turns()
    looked.go.set()
    assert await stays == 0
