"""Migrated databases to copy: making one takes as long as many a test, and a copy is as good."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory

from tests import services

ROOT = Path(__file__).parents[2]


@cache
def directory() -> Path:
    """As long as this process lives."""
    made = TemporaryDirectory(prefix="tickwire-prepared-")
    atexit.register(made.cleanup)
    # The processes of PostgreSQL are of another user.
    Path(made.name).chmod(0o755)
    return Path(made.name)


def migrate(database_url: str) -> None:
    given = {"DATABASE_URL": database_url, "REDIS_URL": "", "VAR_DIR": str(directory() / "var"), "DEMO": "0"}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@cache
def sqlite_file() -> Path:
    path = directory() / "prepared.sqlite3"
    migrate(f"sqlite:///{path}")
    return path


@cache
def postgres_data() -> Path:
    """The data of a PostgreSQL that was stopped in good order."""
    data = directory() / "postgres"
    services.create_cluster(services.bundled(*services.POSTGRES).parent / "initdb", data)
    with services.postgres_of(data, Signals.SIGINT) as url:
        migrate(url)
    return data


def copy_sqlite(to: Path) -> None:
    shutil.copyfile(sqlite_file(), to)


def copy_postgres(to: Path) -> None:
    # -a: its owner is not ours.
    subprocess.run(["cp", "-a", "--reflink=auto", str(postgres_data()), str(to)], check=True)
