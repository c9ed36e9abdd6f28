from __future__ import annotations

import asyncio
import threading

import pytest
from django.conf import settings

from core import threads
from core.contract.errors import Overloaded
from core.threads import MAX_WAITING, in_reserved_thread, in_thread, in_thread_promptly
from tests.passing import LoopTime
from tests.patience import PATIENCE_S

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
