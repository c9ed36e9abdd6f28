"""How each of the compared servers is started: ours by `serve`, the others as they are run in service."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.nightly.benchmarks import processes
from tests.nightly.benchmarks.processes import Peer
from tests.programs.services import free_port

from . import cases
from .agreement import record
from .prepare import Prepared

MODULES = "tests.nightly.benchmarks.rest.peers"
NODE = str(Path(__file__).parent / "peers" / "node_http.cjs")
NEEDED = {"wrk": "wrk", "nodejs": "node"}
"""Debian's packages, and what shows that each is there."""
UVICORN = (
    *("-m", "uvicorn", "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--no-server-header"),
    *("--no-proxy-headers", "--log-level", "warning"),
)
GRANIAN = (
    *("-m", "granian", "--interface", "rsgi", "--workers", "1", "--runtime-threads", "1"),
    *("--no-access-log", "--log-level", "warning"),
)
BOLT = ("-m", "django", "runbolt", "--host", "127.0.0.1", "--no-admin")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    cases.OURS: (sys.executable, "manage.py", "serve", "--port"),
    cases.SHARED: (sys.executable, "manage.py", "serve", "--port"),
    cases.NODE: ("node", NODE),
    cases.GRANIAN: (sys.executable, *GRANIAN, f"{MODULES}.granian_app:app", "--port"),
    cases.SOCKETIFY: (sys.executable, "-m", f"{MODULES}.socketify_app"),
    cases.STARLETTE: (sys.executable, *UVICORN, f"{MODULES}.starlette_app:app", "--port"),
    cases.BOLT: (sys.executable, *BOLT, "--port"),
    cases.FASTAPI: (sys.executable, *UVICORN, f"{MODULES}.fastapi_app:make_app", "--factory", "--port"),
}
"""Each ends with the port."""


@contextmanager
def running(
    directory: Path, environment: Mapping[str, str], facts: Prepared, shared: str, wanted: list[str]
) -> Iterator[tuple[list[Peer], dict[str, str]]]:
    """All of them at once, asleep but for the one that is asked, ours first; and why others are not run."""
    answers = directory / "answers"
    answers.mkdir()
    for_peers = {"BENCH_KEY": facts.key, "BENCH_ANSWERS": str(answers), "BENCH_DATABASE": facts.database}
    own = {cases.OURS: {}, cases.SHARED: {"REDIS_URL": shared}}
    own[cases.BOLT] = for_peers | {"DJANGO_SETTINGS_MODULE": f"{MODULES}.bolt.settings"}
    not_run: dict[str, str] = {}
    with ExitStack() as stack:
        peers: list[Peer] = []
        for name in wanted:
            port, everything = free_port(), {**environment, **own.get(name, for_peers)}
            command, log = [*COMMANDS[name], str(port)], directory / f"{port}.log"
            try:
                process = stack.enter_context(processes.running(command, log, [port], everything))
            except (RuntimeError, OSError) as error:
                # A peer that does not run is named; ours must run.
                if name in (cases.OURS, cases.SHARED):
                    raise
                not_run[name] = str(error).strip().splitlines()[-1]
                continue
            peers.append(Peer(name, port, process.pid))
            if name == cases.OURS:
                record(peers[0], facts.key, answers)
        yield peers, not_run
