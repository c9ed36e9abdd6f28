"""A stand-in gets its turn while the database fails, and none writes to a database of another age."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import OperationalError
from pytest_django.fixtures import Settings

from core import process
from core.contract.errors import Overloaded
from market.management.commands.run_engine import Command, engine_health
from market.runtime import market
from tests.patience import PATIENCE_S
from tests.programs.running import environment

pytestmark = pytest.mark.served


class Runner:
    """Its database fails while it starts."""

    def __init__(self, error: Exception) -> None:
        self.error, self.done = error, list[str]()
        self.writer = self
        self.lease_lost, self.is_running = asyncio.Event(), False

    async def stand_by(self) -> None:
        self.done.append("lease")

    async def start(self) -> None:
        self.done.append("start")
        raise self.error

    def lose_lease(self) -> None:
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


class Leading(Runner):
    """Loses its lease as soon as it runs, or is told to end."""

    def __init__(self, lost: asyncio.Event) -> None:
        super().__init__(OSError())
        self.lost, self.bus, self.settle, self.push = lost, self, None, None
        self.roles: list[str] = []

    async def start(self) -> None:
        self.is_running = True
        if self.lost is not self.lease_lost:
            engine_health.become("stopping")
        self.lost.set()

    async def stop(self) -> None:
        self.roles.append(engine_health.role)


@pytest.fixture
def leading(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Leading:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(engine_health, "role", "starting")
    monkeypatch.setattr(process, "freeze_startup_objects", lambda: None)
    runner = Leading(asyncio.Event())
    monkeypatch.setattr(market, "separate_engine", lambda: runner)
    return runner


async def test_engine_that_lost_its_lease_no_longer_says_that_it_leads(leading: Leading) -> None:
    leading.lost = leading.lease_lost
    await asyncio.wait_for(Command().take_a_turn(asyncio.Event()), PATIENCE_S)
    assert leading.roles == ["standby"]


async def test_engine_that_is_told_to_end_as_it_starts_says_that_it_stops(leading: Leading) -> None:
    await asyncio.wait_for(Command().take_a_turn(leading.lost), PATIENCE_S)
    assert leading.roles == ["stopping"]


def run(var_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # Nobody is asked there: the database is looked at first.
    env = environment(var_dir, DEMO="0", REDIS_URL="redis://127.0.0.1:1/0")
    return subprocess.run(
        [sys.executable, "manage.py", *words], env=env, capture_output=True, text=True, check=False
    )


def test_run_engine_refuses_a_database_that_is_behind_the_code(tmp_path: Path) -> None:
    assert run(tmp_path, "migrate", "--verbosity", "0").returncode == 0
    assert run(tmp_path, "migrate", "instruments", "0003", "--verbosity", "0").returncode == 0

    refused = run(tmp_path, "run_engine")

    assert refused.returncode == 1
    assert "The database is behind the code: instruments.0004" in refused.stderr
    assert "manage.py migrate` first." in refused.stderr
