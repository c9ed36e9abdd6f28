"""How each of the compared servers is started: ours by `serve`, the others as they are run in service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.nightly.benchmarks.configurations import fill
from tests.nightly.benchmarks.servers import Peer, serving
from tests.programs.services import free_port

from . import names
from .agreement import record
from .prepare import Prepared

PEERS = Path(__file__).parent / "peers"
NEEDED = {"wrk": "wrk", "nodejs": "node", "nginx-light": "nginx"}
"""Debian's packages, and what shows that each is there."""
UVICORN = (
    *("-m", "uvicorn", "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--no-server-header"),
    *("--no-proxy-headers", "--log-level", "warning"),
)
GRANIAN = (
    *("-m", "granian", "--interface", "rsgi", "--workers", "1", "--runtime-threads", "1"),
    *("--no-access-log", "--log-level", "warning"),
)
Words = list[str]


class Start(NamedTuple):
    command: Callable[[int], Words]
    """For this port."""
    environment: Mapping[str, str]


def python(*words: str) -> Callable[[int], Words]:
    return lambda port: [sys.executable, *words, "--port", str(port)]


class Servers:
    """Prepared once: a database, a key whose window no measurement uses up, and the answers of ours."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], facts: Prepared, shared: str | None
    ) -> None:
        self._directory, self._environment = directory, environment
        self.key = facts.key
        self.answers = directory / "answers"
        self.answers.mkdir()
        peers = "tests.nightly.benchmarks.rest.peers"
        recorded = {"BENCH_KEY": facts.key, "BENCH_ANSWERS": str(self.answers)}
        stored = recorded | {"BENCH_DATABASE": facts.database, "BENCH_PEPPER": facts.pepper}
        drf = stored | {"DJANGO_SETTINGS_MODULE": f"{peers}.drf_settings"}
        bolt = recorded | {"DJANGO_SETTINGS_MODULE": f"{peers}.bolt.settings"}
        self._starts = {
            names.OURS: Start(self._ours, {}),
            names.SHARED: Start(self._ours, {"REDIS_URL": shared or ""}),
            names.NODE: Start(lambda port: ["node", str(PEERS / "node_http.cjs"), str(port)], recorded),
            names.GRANIAN: Start(python(*GRANIAN, f"{peers}.granian_app:app"), recorded),
            names.SOCKETIFY: Start(
                lambda port: [sys.executable, "-m", f"{peers}.socketify_app", str(port)], recorded
            ),
            names.STARLETTE: Start(python(*UVICORN, f"{peers}.starlette_app:app"), recorded),
            names.BOLT: Start(python("-m", "django", "runbolt", "--host", "127.0.0.1", "--no-admin"), bolt),
            names.FASTAPI: Start(python(*UVICORN, f"{peers}.fastapi_app:make_app", "--factory"), stored),
            names.DRF: Start(python(*UVICORN, "django.core.asgi:get_asgi_application", "--factory"), drf),
            names.NGINX: Start(self._nginx, {}),
        }

    @staticmethod
    def _ours(port: int) -> Words:
        return [sys.executable, "manage.py", "serve", "--port", str(port)]

    def _nginx(self, port: int) -> Words:
        words = {"PORT": port, "ANSWERS": self.answers}
        configuration = fill(PEERS / "nginx.conf", self._directory, words)
        return ["nginx", "-p", str(self._directory), "-c", str(configuration)]

    def start(self, name: str) -> AbstractContextManager[Peer]:
        port, (command, own) = free_port(), self._starts[name]
        log = self._directory / f"{port}.log"
        return serving(name, command(port), port, {**self._environment, **own}, log)


@contextmanager
def running(servers: Servers, wanted: list[str]) -> Iterator[tuple[list[Peer], dict[str, str]]]:
    """All of them at once, asleep but for the one that is asked, ours first; and why others are not run."""
    not_run: dict[str, str] = {}
    with ExitStack() as stack:
        peers = []
        for name in wanted:
            try:
                peers.append(stack.enter_context(servers.start(name)))
                if name == names.OURS:
                    record(peers[0], servers.key, servers.answers)
            except (RuntimeError, OSError) as error:
                # A peer that does not run is named; ours must run.
                if name in (names.OURS, names.SHARED):
                    raise
                not_run[name] = str(error).strip().splitlines()[-1]
        yield peers, not_run
