"""An engine under load, and what Redis and PostgreSQL were asked and what that took them, by their own
counts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psycopg
from redis import Redis

from tests.nightly.benchmarks.processes import cpu_s, family_cpu_s
from tests.programs.commands import manage
from tests.programs.services import postgres

WEB = "web"
"""The name under which the web process that is measured asks PostgreSQL."""
ASKED = re.compile(rf"^{WEB}\|.*LOG:  (?:statement|execute)", re.MULTILINE)
SETTINGS = ("log_statement = 'all'", "log_line_prefix = '%a|'")


class Counts(NamedTuple):
    """Up to now."""

    at_s: float
    web_s: float
    """Of processor time, as the next."""
    redis_s: float
    redis_bytes: float
    scripts: float
    """Calls of EVALSHA, as limits and slots are asked for."""
    scripts_us: float
    """What they took, as Redis itself measures it."""
    queries: float
    postgres_s: float

    def minus(self, other: Counts) -> Counts:
        return Counts(*(now - then for now, then in zip(self, other, strict=True)))

    def each(self, many: int) -> Counts:
        return Counts(*(all_ / many for all_ in self))

    def beyond(self, at_rest: Counts) -> Counts:
        """What of this would not have been, had nobody asked for anything."""
        share = self.at_s / at_rest.at_s
        return Counts(*(all_ - rest * share for all_, rest in zip(self, at_rest, strict=True)))


class Counter:
    def __init__(self, redis: Redis, postgres: Path, web: int) -> None:
        self._redis, self._log, self._web = redis, postgres / "postgres.log", web
        self._postmaster = int((postgres / "postgres" / "postmaster.pid").read_text().split()[0])

    def now(self) -> Counts:
        info: Any = self._redis.info("everything")
        scripts = info.get("cmdstat_evalsha", {"calls": 0, "usec": 0})
        return Counts(
            time.monotonic(),
            cpu_s(self._web),
            info["used_cpu_user"] + info["used_cpu_sys"],
            info["total_net_output_bytes"],
            scripts["calls"],
            scripts["usec"],
            len(ASKED.findall(self._log.read_text(errors="replace"))),
            family_cpu_s(self._postmaster),
        )

    def since(self, before: Counts) -> Counts:
        return self.now().minus(before)


@contextmanager
def logged_postgres() -> Iterator[tuple[str, Path]]:
    """One that writes down each statement, with who asked it."""
    with TemporaryDirectory(prefix="tickwire-postgres-") as folder, postgres(Path(folder)) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in SETTINGS:
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")
        yield url, Path(folder)


INSTRUMENTS, SYMBOL = 50, "BENCH000"
LONGEST_S = 600


@contextmanager
def engine(environment: Mapping[str, str], per_second: int) -> Iterator[None]:
    """It makes instruments, and ticks of them until the context is left."""
    words = map(str, (INSTRUMENTS, per_second, LONGEST_S))
    command = [sys.executable, "-m", "tests.nightly.benchmarks.engine.run", *words]
    named = {"DJANGO_SETTINGS_MODULE": "config.settings", **environment}
    running = subprocess.Popen(command, env=os.environ | named, stdout=subprocess.DEVNULL)
    try:
        yield
        if running.poll() is not None:
            raise RuntimeError("The engine ended before its time; its lines stand above.")
    finally:
        running.kill()
        running.wait()


def run(folder: Path, settings: Mapping[str, str], *command: str) -> str:
    ran = manage(folder / "var", *command, **settings)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return ran.stdout
