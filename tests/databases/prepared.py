"""Migrated databases to copy, because making one takes as long as hundreds of tests. Who needs it first makes
it, for all processes of the run."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory

import psycopg

from tests.programs import services

ROOT = Path(__file__).parents[2]
# Workers inherit it from the process that started them.
PLACE = "TICKWIRE_PREPARED"
NEWEST = "tickwire_prepared"


def directory() -> Path:
    """As long as the run."""
    if PLACE not in os.environ:
        made = TemporaryDirectory(prefix="tickwire-prepared-")
        atexit.register(made.cleanup)
        # The processes of PostgreSQL are of another user.
        Path(made.name).chmod(0o755)
        os.environ[PLACE] = made.name
    return Path(os.environ[PLACE])


@contextmanager
def made_by_the_first(name: str) -> Iterator[bool]:
    """Whether it is still to be made; everybody else waits."""
    mark = directory() / f"{name}.made"
    with (directory() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not mark.exists()
        mark.touch()


def migrate(database_url: str) -> None:
    given = {"DATABASE_URL": database_url, "REDIS_URL": "", "VAR_DIR": str(directory() / "var"), "DEMO": "0"}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def copy_sqlite(to: Path) -> None:
    path = directory() / "prepared.sqlite3"
    with made_by_the_first("sqlite") as is_missing:
        if is_missing:
            migrate(f"sqlite:///{path}")
    shutil.copyfile(path, to)


def copy_postgres(to: Path) -> None:
    """The data of a PostgreSQL that was stopped in good order."""
    data = directory() / "postgres"
    with made_by_the_first("postgres") as is_missing:
        if is_missing:
            services.create_cluster(services.bundled(*services.POSTGRES).parent / "initdb", data)
            with services.postgres_of(data, Signals.SIGINT) as url:
                migrate(url)
    # -a: its owner is not ours.
    subprocess.run(["cp", "-a", "--reflink=auto", str(data), str(to)], check=True)


def copy_database(server_url: str, to: str) -> None:
    """Within a PostgreSQL that runs."""
    with made_by_the_first("database") as is_missing, psycopg.connect(server_url, autocommit=True) as server:
        if is_missing:
            server.execute(f"DROP DATABASE IF EXISTS {NEWEST}")
            server.execute(f"CREATE DATABASE {NEWEST}")
            migrate(f"{server_url.rpartition('/')[0]}/{NEWEST}")
        server.execute(f"DROP DATABASE IF EXISTS {to}")
        server.execute(f"CREATE DATABASE {to} TEMPLATE {NEWEST}")
