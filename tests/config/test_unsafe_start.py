"""What production refuses, as a person meets it: by the command that checks, and at any server's start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import START_PATIENCE_S
from tests.programs.commands import manage
from tests.programs.running import environment
from tools.lint.production import PRODUCTION

pytestmark = pytest.mark.served

WEAK = PRODUCTION | {"SECRET_KEY": "changeme" * 8, "ALLOWED_HOSTS": "*"}
CHECK = ("check", "--deploy", "--fail-level", "WARNING")


def start(var_dir: Path, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As uvicorn or daphne does, which run no checks."""
    return subprocess.run(
        [sys.executable, "-c", "import config.asgi"],
        env=environment(var_dir, **settings),
        capture_output=True,
        text=True,
        timeout=START_PATIENCE_S,
        check=False,
    )


def test_check_deploy_names_a_weak_secret_and_any_host_and_nothing_else(tmp_path: Path) -> None:
    checked = manage(tmp_path, *CHECK, **WEAK)
    assert checked.returncode == 1
    assert set(re.findall(r"tickwire\.\w+", checked.stderr)) == {"tickwire.E002", "tickwire.E005"}


def test_no_server_starts_with_them_and_one_with_others_does(tmp_path: Path) -> None:
    refused, started = start(tmp_path, WEAK), start(tmp_path, PRODUCTION)
    assert refused.returncode == 1
    assert "PRODUCTION=1 does not start like this" in refused.stderr
    assert (started.returncode, started.stderr) == (0, "")
