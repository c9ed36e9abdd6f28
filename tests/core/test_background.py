"""Tasks end, also those that lose a cancellation; loops go on, whatever their work raises."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator

import pytest
from django.conf import settings
from django.db import OperationalError
from redis.exceptions import OutOfMemoryError, ResponseError

from core import threads
from core.background import (
    BackgroundLoop,
    SharedLookups,
    TimeoutInSlices,
    cancel_and_wait,
    first_done,
    is_done_within,
)
from core.contract.errors import Overloaded
from core.fault_log import IS_FULL, EachFault, LastingFault
from core.threads import MAX_WAITING, in_reserved_thread, in_thread, in_thread_promptly
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


@pytest.mark.parametrize(
    "fault",
    [
        OutOfMemoryError(
            "command not allowed when used memory > 'maxmemory'. script: 8d3f, on @user_script:7."
        ),
        # Before Redis 7.
        ResponseError("Error running script (call to f_8d3f): @user_script:7: -OOM command not allowed"),
    ],
)
def test_full_redis_is_told_without_the_script_that_met_it(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    for each in (EachFault(logger, WAITS), LastingFault(logger, WAITS)):
        each.tell(fault)
    assert caplog.messages == [f"{WAITS}: {IS_FULL}"] * 2


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


pytestmark = pytest.mark.usefixtures("transactional_db")
ROOM = settings.API_THREADS + MAX_WAITING


async def test_full_queue_refuses_and_says_when_to_come_back() -> None:
    go = threading.Event()
    waiting = [asyncio.create_task(in_thread(go.wait, PATIENCE_S)) for _ in range(ROOM)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(Overloaded) as refused:
            await in_thread(go.wait, PATIENCE_S)
        assert refused.value.headers == {"Retry-After": "1"}
        assert (await in_reserved_thread(threading.current_thread)).name.startswith("control-events")
    finally:
        go.set()
        await asyncio.gather(*waiting)
    assert (await in_thread(threading.current_thread)).name.startswith("database")
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 1, 0)


async def test_callers_who_leave_make_room() -> None:
    go = threading.Event()
    waiting = [asyncio.create_task(in_thread(go.wait, PATIENCE_S)) for _ in range(ROOM)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    go.set()
    assert await in_thread(int, "8") == 8


async def test_question_is_answered_though_all_stood_still_longer_than_it_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "PROMPTLY_S", PATIENCE_S)
    loop, time, stood_still = asyncio.get_running_loop(), LoopTime(), threading.Event()

    def stand_still() -> None:
        time.passed_s += 2 * PATIENCE_S
        # After the timers that are due by then.
        loop.call_later(0.01, stood_still.set)

    loop.call_soon(stand_still)
    assert await in_thread_promptly(stood_still.wait, PATIENCE_S)


async def test_control_question_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "PROMPTLY_S", 0.05)
    go = threading.Event()
    try:
        with pytest.raises(Overloaded):
            await in_thread_promptly(go.wait, PATIENCE_S)
    finally:
        go.set()


# One look for all who ask at once, and for nobody one that began before they asked.
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
