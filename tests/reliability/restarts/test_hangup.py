"""A closed terminal, or SIGHUP by hand, ends a single process in order; `--workers` replaces its workers."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.programs.running import Serve
from tests.reliability.services.engine_processes import engine_process
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import command_of

from .test_two_services import migrated

pytestmark = pytest.mark.row("35", "without a supervisor, SIGHUP ends a process in an orderly way")
SAID = "SIGHUP: this process ends as on SIGTERM"


@pytest.fixture(autouse=True)
def _heeded() -> Iterator[None]:
    """What is started now heeds it, though these tests may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_sighup_ends_a_single_service_in_an_orderly_way(tmp_path: Path) -> None:
    with Serve(migrated(tmp_path), DEMO="0") as serve:
        os.kill(serve.pid, signal.SIGHUP)
        wait_until(lambda: not command_of(serve.pid))

        assert serve.stop() == -signal.SIGTERM
        assert SAID in serve.output
    with sqlite3.connect(tmp_path / "var" / "tickwire.sqlite3") as database:
        assert database.execute("SELECT writer FROM market_enginestate").fetchall() == [("",)]


def test_sighup_ends_an_engine_in_an_orderly_way(scaled: Installation) -> None:
    with engine_process(scaled, 0, {}) as engine:
        wait_until(lambda: engine.said("The engine runs"))
        os.kill(engine.pid, signal.SIGHUP)
        wait_until(lambda: not command_of(engine.pid))

    said = (scaled.directory / "engine-0.log").read_text()
    assert SAID in said
    assert said.rstrip().endswith("Stopped.")
