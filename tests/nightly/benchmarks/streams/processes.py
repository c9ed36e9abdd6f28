"""Servers under load, each in a process on its core, from its first answer to the end of the context."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.nightly.benchmarks.servers import CLIENT_CORE, SERVER_CORE, children, wait_until_ready
from tests.programs.services import free_port, stop

NOTHING: Mapping[str, str] = MappingProxyType({})
__all__ = ["CLIENT_CORE", "SERVER_CORE", "children", "free_port", "module", "running"]


def module(name: str, *words: object) -> list[str]:
    """The command of a Python module beside this one."""
    return [sys.executable, "-m", f"{__package__}.{name}", *map(str, words)]


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    ports: Sequence[int] = (),
    environment: Mapping[str, str] = NOTHING,
    core: int = SERVER_CORE,
) -> Iterator[int]:
    """Yields the process id when all ports answer."""
    bound = ("setpriv", "--pdeathsig=SIGKILL", "taskset", "-c", str(core))
    with log.open("wb") as out:
        process = subprocess.Popen([*bound, *command], env=os.environ | environment, stdout=out, stderr=out)
    try:
        for port in ports:
            wait_until_ready(process, port, log)
        yield process.pid
    finally:
        stop(process, signal.SIGTERM)
