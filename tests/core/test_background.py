"""Tasks end, also those that lose a cancellation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine

import pytest

from core.background import TimeoutInSlices, cancel_and_wait, first_done, is_done_within
from tests.passing import LoopTime
from tests.patience import PATIENCE_S


async def deaf(times: int) -> None:
    """Loses so many cancellations, as a task in `wait_for` may."""
    for _ in range(times):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    await asyncio.Event().wait()


async def broken() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("on the way out")


async def begun(coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0)
    return task


async def test_task_that_lost_a_cancellation_is_told_again() -> None:
    task = await begun(deaf(2))

    async with asyncio.timeout(PATIENCE_S):
        await cancel_and_wait(task, again_s=0.01)

    assert task.cancelled()


async def test_fault_on_the_way_out_ends_a_task_too() -> None:
    quick, faulty = await begun(deaf(0)), await begun(broken())

    await cancel_and_wait(quick, faulty, None)

    assert (quick.cancelled(), faulty.done()) == (True, True)


async def test_ended_task_is_ended_already() -> None:
    task = await begun(asyncio.sleep(0))
    await task

    await cancel_and_wait(task)


async def test_first_that_is_done_ends_the_others() -> None:
    other = asyncio.ensure_future(asyncio.Event().wait())

    await first_done(asyncio.sleep(0), other)

    assert other.cancelled()


async def test_first_that_is_done_raises_what_it_raised() -> None:
    async def break_down() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await first_done(break_down(), asyncio.Event().wait())


async def test_nothing_is_waited_for_beyond_the_timeout() -> None:
    await first_done(asyncio.Event().wait(), timeout_s=0.01)


def answer_after_a_standstill() -> asyncio.Future[None]:
    loop, time = asyncio.get_running_loop(), LoopTime()
    answer: asyncio.Future[None] = loop.create_future()

    def stand_still() -> None:
        time.passed_s += 2 * PATIENCE_S
        loop.call_later(0.01, answer.set_result, None)

    loop.call_soon(stand_still)
    return answer


async def test_answer_right_after_a_standstill_is_in_time() -> None:
    assert await is_done_within(answer_after_a_standstill(), PATIENCE_S)


async def test_answer_that_never_comes_is_not_waited_for() -> None:
    assert not await is_done_within(asyncio.get_running_loop().create_future(), 0.01)


async def test_timeout_in_slices_ends_what_does_not() -> None:
    with pytest.raises(TimeoutError):
        async with TimeoutInSlices(0.01):
            await asyncio.Event().wait()


async def test_standstill_uses_up_one_slice_of_a_timeout() -> None:
    async with TimeoutInSlices(PATIENCE_S):
        await answer_after_a_standstill()
