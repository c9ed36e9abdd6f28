from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accounts.open_streams.slot_sync import Nudges
from tests.patience import PATIENCE_S


class Faulty:
    """A Redis client that fails in a way nobody thought of."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def pubsub(self) -> Any:
        self.asked.set()
        raise ZeroDivisionError


async def test_a_fault_nobody_thought_of_is_logged_and_leaves_nobody_deaf(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.open_streams.slot_sync.TRY_AGAIN_S", 0.01)
    redis: Any = Faulty()
    nudges = Nudges(redis, "ends", lambda: None)
    await nudges.start()
    await asyncio.wait_for(redis.asked.wait(), PATIENCE_S)
    redis.asked.clear()
    await asyncio.wait_for(redis.asked.wait(), PATIENCE_S)
    await nudges.stop()

    assert [record.exc_info is not None for record in caplog.records] == [True, True]
