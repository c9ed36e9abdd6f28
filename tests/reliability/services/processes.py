"""Real server processes on sockets of their own, over a database and a Redis of the test's choice."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
from django.conf import settings
from django.db import connection, connections
from django.db.utils import ConnectionHandler

from config.environment import read_database_url
from tests.factories import make_account, make_key, make_tier
from tests.patience import PATIENCE_S, START_PATIENCE_S
from tests.programs.running import PATIENT
from tests.programs.services import free_port

ROOT = Path(__file__).parents[3]
STOP_WITHIN_S = 120.0
SHIPPED = ("manage.py", "serve")
# With none of our bounds between the sockets and the application: for controls only.
STOCK = ("-m", "uvicorn", "config.asgi:application", "--lifespan", "on", "--no-access-log")
# One for all: httpx would make a new TLS context for each request, at 20 ms of a core.
http = httpx.Client(timeout=PATIENCE_S)


class Process(NamedTuple):
    """A server under test."""

    port: int
    pid: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, key: str = "") -> httpx.Response:
        return http.get(f"{self.url}{path}", headers={"X-API-Key": key} if key else {})

    def metrics(self) -> str:
        headers = {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}
        return http.get(f"{self.url}/metrics", headers=headers).text

    def metric(self, name: str) -> float:
        lines = self.metrics().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


class Installation:
    """One database, one Redis or none, and the secrets that its processes share."""

    root, python = ROOT, sys.executable
    """Whose code its processes run, and in which environment."""
    engine_program: Sequence[str] = ("manage.py", "run_engine")

    def __init__(self, directory: Path, database_url: str, redis_url: str = "") -> None:
        self.directory, self.database_url, self.redis_url = directory, database_url, redis_url
        self._numbers = iter(range(10_000))

    def environment(self, **changes: str) -> dict[str, str]:
        given = {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "VAR_DIR": str(self.directory),
            "SECRET_KEY": settings.SECRET_KEY,
            "KEY_PEPPER": settings.KEY_PEPPER,
            "DEMO": "0",
        }
        return PATIENT | os.environ | given | changes

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A management command in a process of its own."""
        return manage(self.environment(), *arguments, root=self.root, python=self.python)

    @contextmanager
    def serve(self, count: int, **changes: str) -> Iterator[list[Process]]:
        """Servers as they are shipped, from their first healthy answer to the end of the context."""
        with ExitStack() as running:
            # All start before the first is waited for.
            started = [running.enter_context(self._start(SHIPPED, 0, changes)) for _ in range(count)]
            for process, server in started:
                wait_until_healthy(process, server)
            yield [server for _, server in started]

    @contextmanager
    def web_process(self, port: int = 0, **changes: str) -> Iterator[Process]:
        """One of them, at a port of its own if none is named."""
        with self._start(SHIPPED, port, changes) as (process, server):
            wait_until_healthy(process, server)
            yield server

    @contextmanager
    def serve_stock(self, **changes: str) -> Iterator[Process]:
        """One that is not shipped: uvicorn as it comes."""
        with self._start(STOCK, 0, changes) as (process, server):
            wait_until_healthy(process, server)
            yield server

    @contextmanager
    def _start(
        self, program: Sequence[str], port: int, changes: Mapping[str, str]
    ) -> Iterator[tuple[subprocess.Popen[bytes], Process]]:
        port, log = port or free_port(), self.directory / f"server-{next(self._numbers)}.log"
        command = tied(*program, "--port", str(port), python=self.python)
        with logged(command, log, self.environment(**changes), self.root) as process:
            yield process, Process(port, process.pid, log)

    def make_key(self, tier: str = "roomy", **limits: int) -> str:
        """Of an account of its own."""
        with self.orm():
            return make_key(make_account(tier=make_tier(tier, **limits)))

    @contextmanager
    def orm(self, *, only_reads: bool = False) -> Iterator[None]:
        """In this thread, let the models mean this installation's database."""
        before = connections["default"]
        config = read_database_url(self.database_url)
        if self.database_url.startswith("sqlite"):
            # Who writes waits for the server as it waits for them; who reads waits for nobody.
            mode = "DEFERRED" if only_reads else "IMMEDIATE"
            config["OPTIONS"] = {"transaction_mode": mode, "timeout": PATIENCE_S}
        connections["default"] = ConnectionHandler({"default": config})["default"]
        try:
            yield
        finally:
            connection.close()
            connections["default"] = before


def manage(
    environment: Mapping[str, str], *arguments: str, root: Path = ROOT, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    command, limit_s = tied("manage.py", *arguments, python=python), START_PATIENCE_S
    return subprocess.run(
        command, cwd=root, env=environment, timeout=limit_s, capture_output=True, text=True, check=False
    )


def tied(*arguments: str, python: str = sys.executable) -> list[str]:
    """Python, which the kernel ends when we end, even by kill -9."""
    setpriv = shutil.which("setpriv")
    return [*([setpriv, "--pdeathsig=KILL"] if setpriv else []), python, *arguments]


@contextmanager
def logged(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """A program, until the context is left; what it says is in the file."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        stop(process)


def listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
        return True
    return False


def wait_until_healthy(process: subprocess.Popen[bytes], server: Process) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if server.ask("/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"A server did not start:\n{server.log.read_text()[-2000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
