"""A web process as systemd runs it: killed and started again when it does not feed its watchdog."""

from __future__ import annotations

import re
import socket
import subprocess
from typing import Self

from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port
from tests.reliability.clients.writer import Writer
from tests.reliability.services.processes import ROOT, SHIPPED, Installation, logged, tied

UNIT = (ROOT / "deploy/systemd/tickwire-web@.service").read_text()
(RESTART_S,) = map(int, re.findall(r"^RestartSec=(\d+)$", UNIT, re.M))


class WebUnit(Writer):
    def __init__(self, installation: Installation, *, is_watched: bool = True) -> None:
        self.port = free_port()
        self.starts = self.pid = 0
        """How often one has reported that it is ready, and the present one."""
        self._log = installation.directory / f"unit-{self.port}.log"
        self._is_watched = is_watched
        self._reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._reports.bind("")
        name = f"@{self._reports.getsockname()[1:].decode()}"
        self._environment = installation.environment(NOTIFY_SOCKET=name)

    def __enter__(self) -> Self:
        super().__enter__()
        wait_until(lambda: self.starts)
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._reports.close()

    def turn(self) -> None:
        command = tied(*SHIPPED, "--port", str(self.port))
        with logged(command, self._log, self._environment) as process:
            self.pid = process.pid
            self._watch(process)
            process.kill()
        self.has_ended.wait(RESTART_S)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Until it is silent for too long."""
        self._reports.settimeout(PATIENCE_S)
        while process.poll() is None and not self.has_ended.is_set():
            try:
                name, _, value = self._reports.recv(100).partition(b"=")
            except TimeoutError:
                return
            self.starts += name == b"READY"
            if name == b"WATCHDOG_USEC" and self._is_watched:
                self._reports.settimeout(int(value) / 1_000_000)
