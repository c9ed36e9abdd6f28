"""The servers under measurement, each a program of its own on the one core that servers share."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.programs.services import stop, tail

SERVER_CORE, CLIENT_CORE = 0, 1
READY_WITHIN_S = 60
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Peer:
    """A running server. It sleeps, using no core, until it is asked to serve."""

    def __init__(self, name: str, port: int, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._process = process

    @contextmanager
    def awake(self) -> Iterator[None]:
        self.wake()
        try:
            yield
        finally:
            self.put_to_sleep()

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def put_to_sleep(self) -> None:
        self._signal(signal.SIGSTOP)

    def _signal(self, number: int) -> None:
        for pid in family(self._process.pid):
            # A child may just have ended.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def cpu_s(self) -> float:
        """User and system time of all its processes and threads so far."""
        return sum(map(cpu_s, family(self._process.pid)))


def family(pid: int) -> Iterator[int]:
    """A process and all that descend from it."""
    yield pid
    for child in children(pid):
        yield from family(child)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may just have ended.
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def cpu_s(pid: int) -> float:
    """With that of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS_PER_S


@contextmanager
def serving(
    name: str, command: Sequence[str], port: int, environment: Mapping[str, str], log: Path
) -> Iterator[Peer]:
    """Run a server from its first answer to the end of the context."""
    # A server that sleeps would outlive a killed benchmark for ever: the kernel ends it with us.
    bound = ("setpriv", "--pdeathsig=SIGKILL", "taskset", "-c", str(SERVER_CORE))
    with log.open("wb") as out:
        process = subprocess.Popen([*bound, *command], env=os.environ | environment, stdout=out, stderr=out)
    peer = Peer(name, port, process)
    try:
        wait_until_ready(process, port, log)
        peer.put_to_sleep()
        yield peer
    finally:
        if process.poll() is None:
            peer.wake()
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
