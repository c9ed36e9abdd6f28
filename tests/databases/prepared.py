"""Migrated databases to copy, because making one takes as long as hundreds of tests. Who needs it first makes
it, and it is kept for later runs of the same migrations."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from signal import Signals
from tempfile import gettempdir

import psycopg

from tests.programs import running, services

ROOT = Path(__file__).parents[2]
PREFIX = "tickwire-prepared-"
NEWEST = "tickwire_prepared"
KEPT_S = 7 * 86_400
# What `migrate` runs, and what it reads.
MADE_OF = (
    *("*/migrations/*.py", "*/models.py", "*/models/*.py", "core/schema.py", "signals_feed/ledger/*.py"),
    *("signals_feed/contradictions.py", "signals_feed/judge.py", "tests/programs/patient/sitecustomize.py"),
    *(
        "config/roles.py",
        "accounts/rights.py",
        "pages/front.py",
        "pages/first_texts/*",
    ),
    *("requirements-dev.lock", "tests/databases/prepared.py", "tests/programs/services.py"),
)


@cache
def state(root: Path = ROOT) -> str:
    """Of all that decides what a migrated database holds."""
    whole = hashlib.sha256(sys.version.encode())
    for path in sorted(path for pattern in MADE_OF for path in root.glob(pattern)):
        whole.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


@cache
def directory() -> Path:
    """Of this state of the migrations and this user; those that no run has used for a week go."""
    place = Path(gettempdir()) / f"{PREFIX}{os.getuid()}-{state()}"
    # The processes of PostgreSQL are of another user.
    place.mkdir(mode=0o755, exist_ok=True)
    os.utime(place)
    for other in place.parent.glob(f"{PREFIX}{os.getuid()}-*"):
        if other.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(other, ignore_errors=True)
    return place


@contextmanager
def made_once(name: str) -> Iterator[Path | None]:
    """Where to make it, if that is still to be done: it counts once the context ends. The others wait."""
    place, made = directory() / name, directory() / f"{name}.making"
    with (directory() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.exists():
            yield None
            return
        # Of a run that was killed meanwhile.
        if made.is_dir():
            shutil.rmtree(made)
        for left in directory().glob(f"{made.name}*"):
            left.unlink()
        yield made
        made.rename(place)


def migrate(database_url: str) -> None:
    given = {"DATABASE_URL": database_url, "REDIS_URL": "", "VAR_DIR": str(directory() / "var"), "DEMO": "0"}
    given["PYTHONPATH"] = running.PATIENT["PYTHONPATH"]
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def copy_sqlite(to: Path) -> None:
    with made_once("prepared.sqlite3") as making:
        if making:
            migrate(f"sqlite:///{making}")
    shutil.copyfile(directory() / "prepared.sqlite3", to)


def copy_postgres(to: Path) -> None:
    """The data of a PostgreSQL that was stopped in good order."""
    with made_once("postgres") as making:
        if making:
            services.create_cluster(services.bundled(*services.POSTGRES).parent / "initdb", making)
            with services.postgres_of(making, Signals.SIGINT) as url:
                migrate(url)
    # -a: its owner is not ours.
    subprocess.run(["cp", "-a", "--reflink=auto", str(directory() / "postgres"), str(to)], check=True)


def copy_database(server_url: str, to: str) -> None:
    """Within a PostgreSQL that runs."""
    making = f"{NEWEST}_making"
    # One after the other: while one copies it, nobody else may.
    with (directory() / "database.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with psycopg.connect(server_url, autocommit=True) as server:
            newest = f"{NEWEST}_{state()}"
            if not server.execute("SELECT 1 FROM pg_database WHERE datname = %s", (newest,)).fetchone():
                server.execute(f"DROP DATABASE IF EXISTS {making}")
                server.execute(f"CREATE DATABASE {making}")
                migrate(f"{server_url.rpartition('/')[0]}/{making}")
                server.execute(f"ALTER DATABASE {making} RENAME TO {newest}")
            server.execute(f"DROP DATABASE IF EXISTS {to}")
            server.execute(f"CREATE DATABASE {to} TEMPLATE {newest}")
