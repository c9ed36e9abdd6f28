"""Packages from npm that only tests need, each folder by its own lock."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
NO_NODE = "Node is missing: install nodejs and npm (`apt-get install nodejs npm` as root), then try again."


def require_npm(directory: Path) -> Path:
    """The installed packages; without Node a test is skipped, but CI fails."""
    if not shutil.which("node") or not shutil.which("npm"):
        if os.environ.get("CI"):
            raise RuntimeError(NO_NODE)
        pytest.skip(NO_NODE)
    modules = directory / "node_modules"
    installed, lock = modules / ".package-lock.json", directory / "package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return modules
    done = subprocess.run(INSTALL, cwd=directory, timeout=PATIENCE_S, capture_output=True, text=True)
    assert done.returncode == 0, f"The packages could not be installed from npm:\n{done.stderr[-2000:]}"
    return modules
