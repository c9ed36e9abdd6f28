"""The whole service with so many instruments, as `serve` runs it: one process, SQLite, the server's core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.nightly.benchmarks.servers import SERVER_CORE, Peer
from tests.programs.installation import SETTINGS
from tests.programs.services import free_port, stop

START_PATIENCE_S, WATCH_S = 600, 0.02
REST_S = 3.0


class Service:
    """It sleeps, using no core, until it is asked to serve."""

    def __init__(self, peer: Peer, key: str, pid: int, started_in_s: float) -> None:
        self.peer, self.key, self._pid = peer, key, pid
        self.started_in_s, self.start_cpu_s = started_in_s, peer.cpu_s()
        self.resident_mb = self.memory_mb

    @property
    def memory_mb(self) -> float:
        return resident_mb(self._pid)

    def at_rest(self, for_s: float = REST_S) -> float:
        """What it takes of its core while nobody asks for anything and no tick comes."""
        with self.peer.awake():
            # What is done once after a start is over when its core is left alone for a moment.
            deadline = time.monotonic() + START_PATIENCE_S
            while (share := self._share(for_s)) > 1 / 2 and time.monotonic() < deadline:
                pass
            return share

    def _share(self, for_s: float) -> float:
        before_s, began_s = self.peer.cpu_s(), time.monotonic()
        time.sleep(for_s)
        return (self.peer.cpu_s() - before_s) / (time.monotonic() - began_s)


def filled(folder: Path, many: int) -> str:
    """Make the database of a folder; returns its key."""
    command = [sys.executable, "-m", "tests.nightly.benchmarks.growth.market", str(many)]
    environment = os.environ | SETTINGS | {"VAR_DIR": str(folder / "var")}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextmanager
def serving(folder: Path, many: int, key: str) -> Iterator[Service]:
    port, log = free_port(), folder / "serve.log"
    # A server that sleeps would outlive a killed benchmark for ever: the kernel ends it with us.
    bound = ("setpriv", "--pdeathsig=SIGKILL", "taskset", "-c", str(SERVER_CORE))
    environment = os.environ | SETTINGS | {"VAR_DIR": str(folder / "var"), "PORT": str(port)}
    began_s = time.monotonic()
    with log.open("wb") as out:
        command = [*bound, sys.executable, "manage.py", "serve"]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        wait_until_it_answers(process, port, log)
        took_s = time.monotonic() - began_s
        service = Service(Peer(f"{many:,} instruments", port, process), key, process.pid, took_s)
        process.send_signal(signal.SIGSTOP)
        yield service
    finally:
        process.send_signal(signal.SIGCONT)
        stop(process, signal.SIGTERM)


def wait_until_it_answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_PATIENCE_S
    while True:
        try:
            urlopen(f"http://127.0.0.1:{port}/healthz", timeout=START_PATIENCE_S).close()
            return
        except (URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"serve did not start:\n{log.read_text()}") from None
            time.sleep(WATCH_S)


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
