"""The servers under measurement: each a real uvicorn of its own on the one core that servers share."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.programs.services import free_port, stop, tail

SERVER_CORE, CLIENT_CORE = 0, 1
READY_WITHIN_S = 60
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# What all of them run on, so that only the application differs.
UVICORN = (
    "--loop",
    "uvloop",
    "--http",
    "httptools",
    "--no-access-log",
    "--no-server-header",
    "--no-proxy-headers",
    "--log-level",
    "warning",
)


class Peer:
    """A running server. It sleeps, using no core, until it is asked to serve."""

    def __init__(self, name: str, port: int, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self._process = process

    @contextmanager
    def awake(self) -> Iterator[None]:
        self._process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGSTOP)

    def cpu_s(self) -> float:
        """User and system time of all its threads so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


@contextmanager
def serving(name: str, target: tuple[str, ...], environment: Mapping[str, str], log: Path) -> Iterator[Peer]:
    """Run uvicorn with this application from its first answer to the end of the context."""
    port = free_port()
    # A server that sleeps would outlive a killed benchmark for ever: the kernel ends it with us.
    bound = ("setpriv", "--pdeathsig=SIGKILL", "taskset", "-c", str(SERVER_CORE))
    command = [*bound, sys.executable, "-m", "uvicorn", *target, "--port", str(port), *UVICORN]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=out, stderr=out)
    try:
        wait_until_ready(process, port, log)
        process.send_signal(signal.SIGSTOP)
        yield Peer(name, port, process)
    finally:
        process.send_signal(signal.SIGCONT)
        stop(process, signal.SIGTERM)


def wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
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
