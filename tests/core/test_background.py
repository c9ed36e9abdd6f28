"""Tasks end, also those that lose a cancellation; loops go on, whatever their work raises."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator

import pytest
from django.db import OperationalError

from core.background import BackgroundLoop, TimeoutInSlices, cancel_and_wait, first_done, is_done_within
from core.contract.errors import Overloaded
from core.fault_log import EachFault, LastingFault
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


async def test_cancelled_tasks_end_also_one_that_lost_it_or_fails_on_its_way_out() -> None:
    ended = await begun(asyncio.sleep(0))
    await ended
    quick, faulty, lost = [await begun(work) for work in (deaf(0), broken(), deaf(2))]
    async with asyncio.timeout(PATIENCE_S):
        await cancel_and_wait(ended, quick, faulty, lost, None, again_s=0.01)
    assert (quick.cancelled(), faulty.done(), lost.cancelled()) == (True, True, True)


async def test_first_that_is_done_ends_the_others_and_raises_what_it_raised() -> None:
    other = asyncio.ensure_future(asyncio.Event().wait())
    await first_done(asyncio.sleep(0), other)
    assert other.cancelled()

    async def break_down() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await first_done(break_down(), asyncio.Event().wait())


async def test_nothing_is_waited_for_beyond_the_timeout() -> None:
    await first_done(asyncio.Event().wait(), timeout_s=0.01)
    assert not await is_done_within(asyncio.get_running_loop().create_future(), 0.01)
    with pytest.raises(TimeoutError):
        async with TimeoutInSlices(0.01):
            await asyncio.Event().wait()


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


async def test_standstill_uses_up_one_slice_of_a_timeout() -> None:
    async with TimeoutInSlices(PATIENCE_S):
        await answer_after_a_standstill()


logger = logging.getLogger("loops")
WAITS, BROKE = "The work waits", "The work broke and goes on"


class Work:
    """Raises what it is given, one after the other; then it is done."""

    def __init__(self, *faults: Exception | None) -> None:
        self._faults: Iterator[Exception | None] = iter(faults)
        self.times = 0
        self.is_done = asyncio.Event()

    async def act(self) -> None:
        self.times += 1
        fault = next(self._faults, self)
        if isinstance(fault, Exception):
            raise fault
        if fault is self:
            self.is_done.set()
            await asyncio.Event().wait()

    async def run_in(self, loop: BackgroundLoop) -> None:
        await loop.start()
        async with asyncio.timeout(PATIENCE_S):
            await self.is_done.wait()
        await loop.stop()


@pytest.mark.parametrize(
    ("fault", "passing"),
    [
        (OperationalError("away"), None),
        (Overloaded("away", retry_after=1), None),
        # Each loop says which faults pass.
        (OSError("no line"), OSError),
    ],
)
async def test_fault_that_passes_is_one_line(
    fault: Exception, passing: type[Exception] | None, caplog: pytest.LogCaptureFixture
) -> None:
    work, each = Work(fault), EachFault(logger, WAITS)
    loop = BackgroundLoop("work", work.act, fault=each, broke=BROKE)
    if passing:
        loop = BackgroundLoop("work", work.act, fault=each, broke=BROKE, passing=(passing,))
    await work.run_in(loop)
    assert caplog.messages == [f"{WAITS}: {fault}"]
    assert work.times == 2


async def test_fault_of_ours_is_logged_with_its_traceback_and_a_stopped_loop_starts_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work(ValueError("ours"))
    loop = BackgroundLoop("work", work.act, fault=EachFault(logger, WAITS), broke=BROKE)
    await work.run_in(loop)
    (record,) = caplog.records
    assert (record.getMessage(), record.levelno) == (BROKE, logging.ERROR)
    assert record.exc_info is not None
    work.is_done.clear()
    await work.run_in(loop)
    assert work.times == 3


async def test_lasting_fault_is_over_with_the_first_success(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(OperationalError("away"), OperationalError("away"), None)
    fault = LastingFault(logger, WAITS, clock=lambda: 0.0)
    await work.run_in(BackgroundLoop("work", work.act, fault=fault, broke=BROKE))
    assert caplog.messages == [f"{WAITS}: away", f"{WAITS}: over after 0 s"]


async def test_it_waits_before_each_turn_after_each_success_and_after_a_fault() -> None:
    work, order = Work(None, OperationalError("away"), ValueError("ours")), list[str]()

    def noting(name: str) -> Callable[[], Awaitable[None]]:
        async def note() -> None:
            order.append(name)

        return note

    before, after, again = (noting(name) for name in ("before", "after", "again"))
    fault = EachFault(logger, WAITS)
    waits = BackgroundLoop(
        "work", work.act, fault=fault, broke=BROKE, before=before, after=after, again=again
    )
    await work.run_in(waits)
    assert order == ["before", "after", "before", "again", "before", "again", "before"]
