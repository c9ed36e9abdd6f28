"""`manage.py serve` as a person starts it: a process of its own, its output, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import httpx

from tests.patience import PATIENCE_S, START_PATIENCE_S

from .services import free_port

# The demo of a person's fresh clone: nothing of this test run's own settings.
OWN = ("DATABASE_URL", "REDIS_URL", "DEMO", "ACCESS_LOG", "LOG_LEVEL", "HOST", "PORT", "PRODUCTION")

# The service's own patience decides nothing on a machine that stands still for seconds. Where a deadline is
# the subject, a test passes DEADLINES_TIMES="1", or a file of reliability takes the fixture `prompt`.
PATIENT = {"DEADLINES_TIMES": "20", "STOP_WITHIN_S": "60", "DATABASE_IDLE_TRANSACTION_S": "200"}
PATIENT["PYTHONPATH"] = str(Path(__file__).with_name("patient"))


def environment(var_dir: Path, **changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in OWN}
    return PATIENT | kept | {"VAR_DIR": str(var_dir), "PYTHONUNBUFFERED": "1"} | changes


@contextmanager
def interruptible() -> Iterator[None]:
    """Who is started here hears Ctrl-C. Under a shell's `&` everybody inherits deafness for it."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Serve:
    """Started when entered; stopped with Ctrl-C when left."""

    def __init__(self, var_dir: Path, *, command: str = "serve", **changes: str) -> None:
        self.command = command
        self._typed: list[str] = []
        self._cwd: Path | None = None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = var_dir.parent / f"serve-{self.port}.log"
        self._environment = environment(var_dir, PORT=str(self.port), **changes)
        self._process: subprocess.Popen[bytes] | None = None

    def as_typed(self, command: list[str], cwd: Path) -> Serve:
        """Instead of manage.py, a whole command that serves, as it is typed in this folder."""
        self._typed, self._cwd = command, cwd
        return self

    def __enter__(self) -> Serve:
        began_at = time.monotonic()
        with self._log.open("wb") as log:
            command = self._typed or [sys.executable, "manage.py", *self._words()]
            with interruptible():
                self._process = subprocess.Popen(
                    command, cwd=self._cwd, env=self._environment, stdout=log, stderr=subprocess.STDOUT
                )
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() - began_at > START_PATIENCE_S:
                raise RuntimeError(f"serve did not start:\n{self.output}")
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int:
        """Ctrl-C, and the exit code it leads to."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise

    def _words(self) -> list[str]:
        return (
            ["serve"] if self.command == "serve" else [self.command, "--noreload", f"127.0.0.1:{self.port}"]
        )

    @property
    def output(self) -> str:
        return self._log.read_text()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=PATIENCE_S).status_code == 200
        except httpx.TransportError:
            return False
