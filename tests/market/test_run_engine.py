"""A stand-in that gets its turn while the database fails has another one."""

from __future__ import annotations

import asyncio

import pytest
from django.db import OperationalError

from accounts.exceptions import Overloaded
from market.management.commands.run_engine import Command
from market.services import market
from tests.patience import PATIENCE_S


class Runner:
    """Its database fails while it starts."""

    def __init__(self, error: Exception) -> None:
        self.error, self.done = error, list[str]()
        self.deposed, self.is_running = asyncio.Event(), False

    async def wait_for_lease(self) -> None:
        self.done.append("lease")

    async def start(self) -> None:
        self.done.append("start")
        raise self.error

    def stand_down(self) -> None:
        """Nothing that is half loaded is written."""
        self.done.append("stand down")

    async def stop(self) -> None:
        self.done.append("stop")


@pytest.mark.parametrize("error", [OperationalError("it restarts"), Overloaded(retry_after=1)])
async def test_engine_outlives_a_database_that_fails_as_it_starts(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    runner = Runner(error)
    monkeypatch.setattr(market, "separate_engine", lambda: runner)
    await Command().take_a_turn(asyncio.Event())
    assert runner.done == ["lease", "start", "stand down", "stop"]


class Waiting(Runner):
    """Its Redis does not come up."""

    def __init__(self, ending: asyncio.Event) -> None:
        super().__init__(OSError())
        self.ending = ending

    async def start(self) -> None:
        self.done.append("start")
        self.ending.set()
        await asyncio.Event().wait()


async def test_engine_that_waits_for_redis_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = asyncio.Event()
    runner = Waiting(ending)
    monkeypatch.setattr(market, "separate_engine", lambda: runner)
    await asyncio.wait_for(Command().take_a_turn(ending), PATIENCE_S)
    assert runner.done == ["lease", "start", "stand down", "stop"]
