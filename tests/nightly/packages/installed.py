"""The installed command, as it is typed far from the source."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.programs.running import environment


def nowhere(home: Path) -> dict[str, str]:
    """No variable of ours says where anything is, and nothing is written into a home directory."""
    return {"VAR_DIR": "", "HOME": str(home / "nobody"), "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}


def typed(program: Path, home: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    names = environment(home, **nowhere(home)) | changes
    return subprocess.run(
        [program, *words], cwd=home, env=names, capture_output=True, text=True, timeout=PATIENCE_S
    )


def files_of(program: Path) -> dict[Path, int]:
    """All of its environment, each with the time at which it was written."""
    (packages,) = program.parents[1].glob("lib/*/site-packages")
    return {path: path.stat().st_mtime_ns for path in packages.rglob("*")}
