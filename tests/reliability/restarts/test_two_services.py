"""Without Redis, one service at a time runs on a data folder. A closed terminal, or SIGHUP by hand, ends a
single process in order; `--workers` replaces its workers."""

from __future__ import annotations

import os
import secrets
import signal
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import prepared
from tests.patience import wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve
from tests.programs.services import free_port
from tests.reliability.services.engine_processes import engine_process
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import command_of

alone = pytest.mark.row("two services", "without Redis, one service at a time uses a data folder")


def migrated(directory: Path) -> Path:
    """A data folder that nothing has used yet."""
    var_dir = directory / "var"
    var_dir.mkdir()
    prepared.copy_sqlite(var_dir / "tickwire.sqlite3")
    # Which a first start makes with the database.
    (var_dir / "secret").write_text(secrets.token_urlsafe(48))
    return var_dir


@alone
def test_a_second_service_on_the_same_data_is_refused(tmp_path: Path) -> None:
    var_dir = migrated(tmp_path)
    with Serve(var_dir, DEMO="0") as first:
        ended = manage(var_dir, "serve", "--port", str(free_port()), DEMO="0")

        assert ended.returncode == 1
        assert f"(process {first.pid} on " in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stdout + ended.stderr
    assert first.stop() == 0


@alone
def test_a_service_waits_for_its_predecessor_to_end(tmp_path: Path) -> None:
    var_dir = migrated(tmp_path)
    with Serve(var_dir, DEMO="0") as first:
        second = Serve(var_dir, DEMO="0")
        log = tmp_path / f"serve-{second.port}.log"

        def end_first() -> None:
            wait_until(lambda: log.exists() and "waiting for its end" in log.read_text())
            os.kill(first.pid, signal.SIGTERM)

        ending = threading.Thread(target=end_first)
        ending.start()
        with second:
            ending.join()
            assert f"process {first.pid} on " in second.output


@alone
def test_a_service_starts_immediately_after_its_predecessor_was_killed(tmp_path: Path) -> None:
    var_dir = migrated(tmp_path)
    with Serve(var_dir, DEMO="0") as first:
        os.kill(first.pid, signal.SIGKILL)
        first.stop()
        with Serve(var_dir, DEMO="0") as second:
            assert "Another service" not in second.output


hangs_up = pytest.mark.row("35", "without a supervisor, SIGHUP ends a process in an orderly way")
SAID = "SIGHUP: this process ends as on SIGTERM"


@pytest.fixture(autouse=True)
def _heeded() -> Iterator[None]:
    """What is started now heeds it, though these tests may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@hangs_up
def test_sighup_ends_a_single_service_in_an_orderly_way(tmp_path: Path) -> None:
    with Serve(migrated(tmp_path), DEMO="0") as serve:
        os.kill(serve.pid, signal.SIGHUP)
        wait_until(lambda: not command_of(serve.pid))

        assert serve.stop() == -signal.SIGTERM
        assert SAID in serve.output
    with sqlite3.connect(tmp_path / "var" / "tickwire.sqlite3") as database:
        assert database.execute("SELECT writer FROM market_enginestate").fetchall() == [("",)]


@hangs_up
def test_sighup_ends_an_engine_in_an_orderly_way(scaled: Installation) -> None:
    with engine_process(scaled, 0, {}) as engine:
        wait_until(lambda: engine.said("The engine runs"))
        os.kill(engine.pid, signal.SIGHUP)
        wait_until(lambda: not command_of(engine.pid))

    said = (scaled.directory / "engine-0.log").read_text()
    assert SAID in said
    assert said.rstrip().endswith("Stopped.")
