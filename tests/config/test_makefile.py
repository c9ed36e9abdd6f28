from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S


def make(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As a person types it, though these tests may run under a `make` themselves."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    own |= environment
    return subprocess.run(
        ["make", *words], env=own, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize("python", ["python-that-is-not-here", "{}/python3"], ids=["missing", "old"])
def test_a_python_that_does_not_do_is_one_clear_sentence(tmp_path: Path, python: str) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    ended = make("run", f"VENV={tmp_path / 'venv'}", f"PYTHON={python.format(tmp_path)}")
    assert ended.returncode != 0
    assert "needs Python 3.11 or newer" in ended.stdout


@pytest.mark.parametrize(("works", "is_used"), [("exit 0", True), ("exit 127", False)])
def test_packages_come_by_uv_where_it_works(works: str, is_used: bool, tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\n{works}\n")
    uv.chmod(0o755)

    planned = make("-n", "run", f"VENV={tmp_path / 'venv'}", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout

    assert ("uv pip install" in planned) is is_used
    assert ("-m pip install" in planned) is not is_used
    assert planned.count("--require-hashes") == 1
