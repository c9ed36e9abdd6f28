"""An engine under load, and the commands that a benchmark gives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.programs.commands import manage

INSTRUMENTS, SYMBOL = 50, "BENCH000"
LONGEST_S = 600


@contextmanager
def engine(environment: Mapping[str, str], per_second: int) -> Iterator[None]:
    """It makes instruments, and ticks of them until the context is left."""
    words = map(str, (INSTRUMENTS, per_second, LONGEST_S))
    command = [sys.executable, "-m", "tests.nightly.benchmarks.engine.run", *words]
    named = {"DJANGO_SETTINGS_MODULE": "config.settings", **environment}
    running = subprocess.Popen(command, env=os.environ | named, stdout=subprocess.DEVNULL)
    try:
        yield
        if running.poll() is not None:
            raise RuntimeError("The engine ended before its time; its lines stand above.")
    finally:
        running.kill()
        running.wait()


def run(folder: Path, settings: Mapping[str, str], *command: str) -> str:
    ran = manage(folder / "var", *command, **settings)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return ran.stdout
