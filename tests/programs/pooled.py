"""`python -m tests.programs.pooled COMMAND …` runs it against a PostgreSQL behind PgBouncer, and a Redis."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .pgbouncer import PgBouncer
from .services import database_url, redis_url


def main() -> int:
    with (
        TemporaryDirectory(prefix="tickwire-pgbouncer-") as directory,
        database_url() as database,
        redis_url() as redis,
    ):
        Path(directory).chmod(0o755)
        with PgBouncer(Path(directory), database).running() as url:
            given = {"DATABASE_URL": url, "DATABASE_POOLER": "transaction", "REDIS_URL": redis}
            return subprocess.run(
                [sys.executable, *sys.argv[1:]], env=os.environ | given, check=False
            ).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except pytest.skip.Exception as missing:
        sys.exit(str(missing))
