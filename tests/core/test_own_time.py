from __future__ import annotations

import asyncio
import time

import pytest

from core.contract.errors import Overloaded
from core.own_time import OwnTime, is_done_within
from core.threads import PROMPTLY_S, in_thread_promptly

STEP_S = 2.0


def test_time_in_which_the_machine_stood_still_does_not_count() -> None:
    own = OwnTime(100.0, STEP_S)
    assert own.pass_to(101.0) == 1.0
    assert own.pass_to(161.0) == 1.0 + STEP_S


async def test_answer_right_after_a_standstill_is_in_time() -> None:
    loop = asyncio.get_running_loop()
    asked = loop.create_future()

    def stand_still() -> None:
        time.sleep(0.5)
        loop.call_later(0.01, asked.set_result, None)

    loop.call_soon(stand_still)
    assert await is_done_within(asked, 0.4)


async def test_answer_that_never_comes_is_not_waited_for() -> None:
    assert not await is_done_within(asyncio.get_running_loop().create_future(), 0.01)


def slow_answer() -> str:
    time.sleep(0.1)
    return "answered"


@pytest.mark.usefixtures("transactional_db")
async def test_question_is_answered_though_all_stood_still_longer_than_it_may_take() -> None:
    asyncio.get_running_loop().call_soon(time.sleep, PROMPTLY_S + 0.5)
    assert await in_thread_promptly(slow_answer) == "answered"


@pytest.mark.usefixtures("transactional_db")
async def test_control_question_that_takes_too_long_is_refused() -> None:
    with pytest.raises(Overloaded):
        await in_thread_promptly(time.sleep, PROMPTLY_S + 1.0)
