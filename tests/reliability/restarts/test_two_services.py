"""Without Redis, one service at a time runs on a data folder."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from pathlib import Path

import pytest

from tests.databases import prepared
from tests.patience import wait_until
from tests.programs.commands import manage
from tests.programs.running import Serve
from tests.programs.services import free_port

pytestmark = pytest.mark.row("two services", "without Redis, one service at a time uses a data folder")


def migrated(directory: Path) -> Path:
    """A data folder that nothing has used yet."""
    var_dir = directory / "var"
    var_dir.mkdir()
    prepared.copy_sqlite(var_dir / "tickwire.sqlite3")
    # Which a first start makes with the database.
    (var_dir / "secret").write_text(secrets.token_urlsafe(48))
    return var_dir


def test_a_second_service_on_the_same_data_is_refused(tmp_path: Path) -> None:
    var_dir = migrated(tmp_path)
    with Serve(var_dir, DEMO="0") as first:
        ended = manage(var_dir, "serve", "--port", str(free_port()), DEMO="0")

        assert ended.returncode == 1
        assert f"(process {first.pid} on " in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stdout + ended.stderr
    assert first.stop() == 0


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


def test_a_service_starts_immediately_after_its_predecessor_was_killed(tmp_path: Path) -> None:
    var_dir = migrated(tmp_path)
    with Serve(var_dir, DEMO="0") as first:
        os.kill(first.pid, signal.SIGKILL)
        first.stop()
        with Serve(var_dir, DEMO="0") as second:
            assert "Another service" not in second.output
