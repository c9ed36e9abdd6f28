"""Programs in Go, built from a folder with Debian's compiler and packages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.patience import PATIENCE_S

from .debian import install, require_debian

PACKAGES = Path("/usr/share/gocode")
MODULES = PACKAGES / "src/golang.org/x/mod/sumdb"


def build_go(source: Path, folder: Path) -> Path:
    """The program; without the compiler a test is skipped, but CI fails."""
    go = require_debian("go", "golang-go")
    if not MODULES.exists():
        install(str(MODULES), "golang-golang-x-mod-dev")
    program = folder / source.name
    given = {
        "GO111MODULE": "off",
        "GOPATH": str(PACKAGES),
        "GOCACHE": str(folder / "cache"),
        "GOFLAGS": "-p=1",
    }
    built = subprocess.run(
        (go, "build", "-o", program, "."),
        cwd=source,
        env=os.environ | given,
        timeout=PATIENCE_S,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return program
