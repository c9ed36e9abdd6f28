"""The programs of a benchmark: servers on the one core that they share, and measurements each in a process.
What they need of Debian is installed where that may be done, and otherwise named."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TypeVar

import msgspec

from tests.programs.installation import SETTINGS
from tests.programs.services import stop, tail

SERVER_CORE, CLIENT_CORE = 0, 1
READY_WITHIN_S = 60
# A process that judges works a quarter of the time, and pauses for ten seconds before it reads all again.
REST_FOR_S, REST_SHARE = 15.0, 0.1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NOTHING: Mapping[str, str] = MappingProxyType({})
T = TypeVar("T")


def run_module(module: str, *words: object, **settings: str) -> bytes:
    """What it prints, with a new folder unless VAR_DIR names one, and without other services unless they are
    named."""
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        environment = os.environ | SETTINGS | {"VAR_DIR": directory} | settings
        command = [sys.executable, "-m", f"tests.nightly.benchmarks.{module}", *map(str, words)]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout


def measured(kind: type[T], module: str, *words: object, **settings: str) -> T:
    return msgspec.json.decode(run_module(module, *words, **settings), type=kind)


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    ports: Sequence[int] = (),
    environment: Mapping[str, str] = NOTHING,
    core: int = SERVER_CORE,
) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from the moment in which all ports answer."""
    # One that sleeps would outlive a killed benchmark for ever: the kernel ends it with us.
    bound = ("setpriv", "--pdeathsig=SIGKILL", "taskset", "-c", str(core))
    with log.open("wb") as out:
        process = subprocess.Popen([*bound, *command], env=os.environ | environment, stdout=out, stderr=out)
    try:
        for port in ports:
            wait_until_ready(process, port, log)
        yield process
    finally:
        for pid in family(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        stop(process, signal.SIGTERM)


def wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                said = tail(log.read_text(errors="replace"))
                raise RuntimeError(f"{process.args!r} did not start:\n{said}") from None
            time.sleep(0.05)


class Peer:
    """A running server. It sleeps, using no core, until it is asked to serve."""

    def __init__(self, name: str, port: int, pid: int) -> None:
        self.name, self.port, self.pid = name, port, pid
        self.url = f"http://127.0.0.1:{port}"
        self._signal(signal.SIGSTOP)

    @contextmanager
    def awake(self) -> Iterator[None]:
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def _signal(self, number: int) -> None:
        for pid in family(self.pid):
            # A child may just have ended.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def cpu_s(self) -> float:
        return family_cpu_s(self.pid)


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


def family_cpu_s(pid: int) -> float:
    """User and system time of all of a family's processes and threads so far."""
    return sum(cpu_s(each, with_ended_children=True) for each in family(pid))


def cpu_s(pid: int, *, with_ended_children: bool = False) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / TICKS_PER_S


def wait_until_at_rest(pid: int) -> None:
    """A process that starts judges the gains that it finds, for minutes if they are a hundred thousand."""
    while True:
        before_s = family_cpu_s(pid)
        time.sleep(REST_FOR_S)
        if family_cpu_s(pid) - before_s < REST_SHARE * REST_FOR_S:
            return


def resident_mb(pid: int, kind: str = "VmRSS") -> float:
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{kind}:")[2].split()[0]) / 1024


def fill(template: Path, directory: Path, words: Mapping[str, object]) -> Path:
    """A configuration in that directory; words in capitals stand for what each run decides."""
    text = template.read_text()
    for word, value in words.items():
        text = text.replace(word, str(value))
    filled = directory / template.name
    filled.write_text(text)
    return filled


def provide(needed: Mapping[str, str]) -> None:
    """Packages, each with what shows that it is there."""

    def missing() -> list[str]:
        return [package for package, sign in needed.items() if not is_there(sign)]

    if missing() and os.geteuid() == 0:
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing())
    for package in missing():
        sys.stdout.write(f"{package} is not there: apt-get install {package}\n")


def is_there(sign: str) -> bool:
    return Path(sign).exists() if sign.startswith("/") else shutil.which(sign) is not None


def run(*command: str) -> None:
    """What fails is said, and the peers that miss it are named in the table."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(f"{' '.join(command)} failed:\n{done.stdout[-500:]}{done.stderr[-1500:]}\n")
