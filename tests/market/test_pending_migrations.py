"""An engine does not write to a database of another age."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.running import environment


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
    assert "Run `manage.py migrate` first." in refused.stderr
