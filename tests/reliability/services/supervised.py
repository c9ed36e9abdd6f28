"""`manage.py serve --workers N` and the processes it consists of."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import wait_until
from tests.programs.services import free_port
from tests.reliability.clients.deaf import port_in
from tests.reliability.clients.measures import descriptors

from .processes import Installation, Process, logged, tied, wait_until_healthy


class Supervised:
    def __init__(self, process: subprocess.Popen[bytes], server: Process) -> None:
        self.process, self.server = process, server

    @property
    def said(self) -> str:
        return self.server.log.read_text()

    @property
    def workers(self) -> list[int]:
        """Those that live, whether they serve yet or not."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if "spawn_main" in command_of(int(pid))]

    @property
    def serving(self) -> list[int]:
        said = {int(pid) for pid in re.findall(r"\(pid (\d+)\) serves", self.said)}
        return [pid for pid in self.workers if pid in said]

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.serving) == count)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def clients_of(pid: int, port: int) -> set[int]:
    """The ports of those whose connections to this one the process holds."""
    own = {link.removeprefix("socket:[").removesuffix("]") for link in descriptors(pid)}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {port_in(row[2]) for row in rows if port_in(row[1]) == port and row[9] in own}


def is_all_read(port: int) -> bool:
    """Whether the server has taken in whatever its clients sent, also those that it had not yet accepted."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return not any(int(row[4].partition(":")[2], 16) for row in rows if port_in(row[1]) == port)


@contextmanager
def supervised(installation: Installation, workers: int = 2, **changes: str) -> Iterator[Supervised]:
    """From the moment all of them serve."""
    port = free_port()
    log = installation.directory / f"supervisor-{port}.log"
    command = tied("manage.py", "serve", "--port", str(port), "--workers", str(workers))
    with logged(command, log, installation.environment(LOG_LEVEL="INFO", **changes)) as process:
        running = Supervised(process, Process(port, process.pid, log))
        wait_until_healthy(process, running.server)
        running.wait_for(workers)
        yield running
