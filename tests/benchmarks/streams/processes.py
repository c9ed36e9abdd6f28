"""Servers under load, each in a process on its core, from its first answer to the end of the context."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.benchmarks.servers import CLIENT_CORE, SERVER_CORE
from tests.services import free_port, stop, tail

READY_WITHIN_S = 60
NOTHING: Mapping[str, str] = MappingProxyType({})
__all__ = ["CLIENT_CORE", "SERVER_CORE", "children", "free_port", "module", "running", "wait_until_open"]


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
            wait_until_open(port, process, log)
        yield process.pid
    finally:
        stop(process, signal.SIGTERM)


def wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                said = tail(log.read_text(errors="replace"))
                raise RuntimeError(f"{process.args!r} did not start:\n{said}") from None
            time.sleep(0.05)
        else:
            return


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
