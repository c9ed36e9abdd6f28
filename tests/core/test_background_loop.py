from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from core.background import BackgroundLoop
from core.contract.errors import Overloaded
from core.fault_log import EachFault, LastingFault
from tests.patience import PATIENCE_S

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


class Waits:
    def __init__(self) -> None:
        self.order: list[str] = []

    async def before(self) -> None:
        self.order.append("before")

    async def after(self) -> None:
        self.order.append("after")

    async def again(self) -> None:
        self.order.append("again")


async def run(loop: BackgroundLoop, work: Work) -> None:
    await loop.start()
    async with asyncio.timeout(PATIENCE_S):
        await work.is_done.wait()
    await loop.stop()


def loop_of(work: Work) -> BackgroundLoop:
    return BackgroundLoop("work", work.act, fault=EachFault(logger, WAITS), broke=BROKE)


@pytest.mark.parametrize("fault", [OperationalError("away"), Overloaded("away", retry_after=1)])
async def test_fault_that_passes_is_one_line(fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    work = Work(fault)

    await run(loop_of(work), work)

    assert caplog.messages == [f"{WAITS}: {fault}"]
    assert work.times == 2


async def test_fault_of_ours_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(ValueError("ours"))

    await run(loop_of(work), work)

    (record,) = caplog.records
    assert (record.getMessage(), record.levelno) == (BROKE, logging.ERROR)
    assert record.exc_info is not None


async def test_each_loop_says_which_faults_pass(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(OSError("no line"))
    fault = EachFault(logger, WAITS)

    await run(BackgroundLoop("work", work.act, fault=fault, broke=BROKE, passing=(OSError,)), work)

    assert caplog.messages == [f"{WAITS}: no line"]


async def test_lasting_fault_is_over_with_the_first_success(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(OperationalError("away"), OperationalError("away"), None)
    fault = LastingFault(logger, WAITS, clock=lambda: 0.0)

    await run(BackgroundLoop("work", work.act, fault=fault, broke=BROKE), work)

    assert caplog.messages == [f"{WAITS}: away", f"{WAITS}: over after 0 s"]


async def test_it_waits_before_each_turn_after_each_success_and_after_a_fault() -> None:
    work, waits = Work(None, OperationalError("away"), ValueError("ours")), Waits()
    loop = BackgroundLoop(
        "work",
        work.act,
        fault=EachFault(logger, WAITS),
        broke=BROKE,
        before=waits.before,
        after=waits.after,
        again=waits.again,
    )

    await run(loop, work)

    assert waits.order == ["before", "after", "before", "again", "before", "again", "before"]


async def test_stopped_loop_starts_again() -> None:
    for _ in range(2):
        work = Work()
        loop = loop_of(work)
        await run(loop, work)
        assert work.times == 1
