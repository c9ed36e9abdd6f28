"""Shows a fault to tests in a process of its own, on a copy of the tree in which the file has it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from .tree import ROOT

LEFT_OUT = (
    ".git",
    ".venv",
    "var",
    "node_modules",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".pytest_cache",
)
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Copy:
    """One for each worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        if not (folder / ".venv").exists():
            (folder / ".venv").symlink_to(ROOT / ".venv")

    def show(
        self, path: Path, source: str, tests: Sequence[str], limit_s: float, program: Sequence[str]
    ) -> dict[str, str]:
        file = self._folder / path
        file.write_text(source)
        try:
            return self._run(tests, limit_s, program)
        finally:
            # With its time: what was compiled of it is good again.
            shutil.copy2(ROOT / path, file)

    def passes(self, tests: Sequence[str], limit_s: float, program: Sequence[str]) -> bool:
        """Without any fault."""
        return self._run(tests, limit_s, program)["outcome"] == "unnoticed"

    def _run(self, tests: Sequence[str], limit_s: float, program: Sequence[str]) -> dict[str, str]:
        named = self._folder / "var" / "mutants-tests"
        named.parent.mkdir(exist_ok=True)
        named.write_text("\n".join(tests))
        command = [sys.executable, *program, "-x", "-q", "-rfE", "-p", "no:cacheprovider", f"@{named}"]
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # What is compiled of a fault must not be found by the next run.
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return {"outcome": "hung"}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if not process.returncode:
            return {"outcome": "unnoticed"}
        failed = FAILED.search(said)
        return {"outcome": "noticed", "by": failed[1]} if failed else {"outcome": "died", "by": said[-300:]}
