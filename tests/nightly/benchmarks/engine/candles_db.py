"""`python -m tests.nightly.benchmarks.engine.candles_db`: how fast candles are written on both databases, and
beside that the plain way, Django's `bulk_create(update_conflicts=True)` of the same candles in the same
run."""

from __future__ import annotations

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

import msgspec

from tests.nightly.benchmarks.tables import aligned, say, spread
from tests.programs.services import database_url

from .candles_db_run import OURS, PLAIN, Rates


def main() -> None:
    rates = {"SQLite": run("")}
    with database_url() as url:
        rates["PostgreSQL"] = run(url)
    say(f"{table(rates)}\n")


def run(url: str) -> Rates:
    """In a process of its own. Without an address: a new SQLite file."""
    command = [sys.executable, "-m", "tests.nightly.benchmarks.engine.candles_db_run"]
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "DEMO": "0", "LOG_LEVEL": "WARNING"}
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        everything = os.environ | settings | {"VAR_DIR": directory, "DATABASE_URL": url}
        done = subprocess.run(command, env=everything, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Rates)


def table(rates: dict[str, Rates]) -> str:
    rows = [["candles/s", OURS, PLAIN, "ratio"]]
    for database, measured in rates.items():
        for what, (ours, plain) in measured.items():
            ratios = [one / other for one, other in zip(ours, plain, strict=True)]
            rows.append([f"{what}, {database}", spread(ours), spread(plain), spread(ratios, 1)])
    return aligned(rows)


if __name__ == "__main__":
    main()
