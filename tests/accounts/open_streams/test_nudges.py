from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accounts.open_streams.slot_sync import hear_nudges
from core.background import cancel_and_wait
from tests.patience import PATIENCE_S


class Faulty:
    """A Redis client that fails in a way nobody thought of."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def pubsub(self) -> Any:
        self.asked.set()
        raise ZeroDivisionError


async def test_a_fault_nobody_thought_of_is_logged_and_leaves_nobody_deaf(
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis: Any = Faulty()
    hearing = asyncio.create_task(hear_nudges(redis, "ends", lambda: None))
    await asyncio.wait_for(redis.asked.wait(), PATIENCE_S)
    await asyncio.sleep(0)
    is_hearing = not hearing.done()
    await cancel_and_wait(hearing)

    assert is_hearing
    assert [record.exc_info is not None for record in caplog.records] == [True]
