"""Ctrl-C at a terminal goes to `serve --workers` and to each of its workers, whatever they are doing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import prepared
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import environment, interruptible
from tests.programs.services import free_port
from tests.reliability.services.processes import Process
from tests.reliability.services.supervised import Supervised

pytestmark = pytest.mark.served

WORKERS = "2"
CAUGHT = re.compile(r"^SigCgt:\s+([0-9a-f]+)$", re.MULTILINE)


def catches_ctrl_c(pid: int) -> bool:
    """Python does from its first moments on; before, the signal ends it in silence."""
    found = CAUGHT.search(Path(f"/proc/{pid}/status").read_text())
    return found is not None and bool(int(found[1], 16) & 1 << signal.SIGINT - 1)


def test_ctrl_c_while_workers_start_ends_them_without_a_traceback(own_redis: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    prepared.copy_sqlite(tmp_path / "x.sqlite3")
    port, log = free_port(), tmp_path / "said"
    command = [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", WORKERS]
    names = environment(tmp_path, DEMO="0", DATABASE_URL=url, REDIS_URL=own_redis)
    with log.open("wb") as out, interruptible():
        process = subprocess.Popen(command, env=names, stdout=out, stderr=out, start_new_session=True)
    try:
        workers = Supervised(process, Process(port, process.pid, log))
        wait_until(lambda: len(workers.workers) == int(WORKERS))
        wait_until(lambda: all(catches_ctrl_c(pid) for pid in workers.workers))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text()
