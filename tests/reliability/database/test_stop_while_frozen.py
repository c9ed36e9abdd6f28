"""SIGTERM while PostgreSQL stands still: nobody answers, and nobody refuses."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import ROOT, Installation, tied
from tests.reliability.services.supervised import is_all_read

# Beyond what these take to stop in order. The database stands still until they have ended.
STOP_WITHIN_S = 2
pytestmark = pytest.mark.row("8, 52", "processes exit on SIGTERM although PostgreSQL is frozen")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture
def database(tmp_path: Path, stack: ExitStack) -> PrivatePostgres:
    made = PrivatePostgres(tmp_path)
    stack.enter_context(made.running())
    return made


def started(installation: Installation, *command: str) -> subprocess.Popen[bytes]:
    environment = installation.environment(STOP_WITHIN_S=str(STOP_WITHIN_S), DRAIN_S="0")
    with (installation.directory / "log").open("wb") as log:
        return subprocess.Popen(
            tied("manage.py", *command), cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )


def is_healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S).is_success
    except httpx.TransportError:
        return False


def ended_with(process: subprocess.Popen[bytes], database: PrivatePostgres) -> int | None:
    """None: not at all."""
    with database.paused():
        # Somebody asks it, in whichever thread, and is not answered.
        wait_until(lambda: not is_all_read(database.port))
        os.kill(process.pid, signal.SIGTERM)
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None


def test_a_server_exits_while_postgresql_is_frozen(database: PrivatePostgres, tmp_path: Path) -> None:
    port = free_port()
    process = started(Installation(tmp_path, database.url), "serve", "--port", str(port))
    wait_until(lambda: is_healthy(port))
    assert ended_with(process, database) == 1
    assert "Stopping took longer than 2 s" in (tmp_path / "log").read_text()


def test_an_engine_exits_while_postgresql_is_frozen(
    database: PrivatePostgres, tmp_path: Path, stack: ExitStack
) -> None:
    redis = PrivateRedis(tmp_path)
    stack.enter_context(redis.running())
    process = started(Installation(tmp_path, database.url, redis.url), "run_engine")
    wait_until(lambda: b"The engine runs" in (tmp_path / "log").read_bytes())
    assert ended_with(process, database) == 1
    assert "Stopping took longer than 2 s" in (tmp_path / "log").read_text()
