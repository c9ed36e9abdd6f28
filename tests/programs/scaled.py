"""`python -m tests.programs.scaled COMMAND …` runs it against a real PostgreSQL and a real Redis."""

from __future__ import annotations

import os
import subprocess
import sys

from .services import database_url, redis_url


def main() -> int:
    with database_url() as database, redis_url() as redis:
        # A test within a transaction may wait for a slow machine before it asks again.
        patient = {"DATABASE_IDLE_TRANSACTION_S": "0"}
        environment = os.environ | patient | {"DATABASE_URL": database, "REDIS_URL": redis}
        return subprocess.run([sys.executable, *sys.argv[1:]], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
