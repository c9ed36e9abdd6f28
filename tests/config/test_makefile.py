from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.patience import PATIENCE_S


def make(*words: str) -> subprocess.CompletedProcess[str]:
    """As a person types it, though these tests may run under a `make` themselves."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *words], env=own, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_a_missing_python_is_one_clear_sentence(tmp_path: Path) -> None:
    ended = make("run", f"VENV={tmp_path / 'venv'}", "PYTHON=python-that-is-not-here")

    assert ended.returncode != 0
    assert ended.stdout.startswith("Tickwire needs Python 3.11 or newer as python-that-is-not-here.")


def test_an_old_python_is_one_clear_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    ended = make("run", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}")

    assert ended.returncode != 0
    assert "needs Python 3.11 or newer" in ended.stdout


def test_help_lists_the_targets() -> None:
    listed = make("help").stdout

    for target in ("run", "test", "reliability", "lint", "lock", "bench-rest"):
        assert f"\n{target} " in f"\n{listed}"
