"""`python -m tests.nightly.benchmarks.news_feed`: how long one client waits for the news, on both databases.
Ends with 1 when half of the answers to a question take longer than the floor."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

import msgspec

from tests.nightly.benchmarks.tables import aligned, say
from tests.nightly.figures import note
from tests.programs.services import database_url

from .news_feed_run import Waited

MOST_MS = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.benchmarks.news_feed", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="published items")
    rows = parser.parse_args().rows
    say(f"Preparing {rows:,} news items on each database …\n")
    waited = {"SQLite": run("", rows)}
    with database_url() as url:
        waited["PostgreSQL"] = run(url, rows)
    say(f"{table(waited)}\n")
    for database, of in waited.items():
        for name, (p50_ms, _) in of.items():
            note(f"{name}, {database}, p50", f"< {MOST_MS:g} ms", f"{p50_ms:.2f} ms", held=p50_ms < MOST_MS)
    slow = [f"{name} on {database}" for database, of in waited.items() for name in too_slow(of)]
    say(f"p50 below {MOST_MS:g} ms everywhere\n" if not slow else f"p50 missed: {', '.join(slow)}\n")
    return 1 if slow else 0


def run(url: str, rows: int) -> Waited:
    """In a process of its own. Without an address: a new SQLite file."""
    command = [sys.executable, "-m", "tests.nightly.benchmarks.news_feed_run", str(rows)]
    quiet = {"DEMO": "0", "LOG_LEVEL": "WARNING", "ACCESS_LOG": "0", "REDIS_URL": ""}
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "NEWS_POLLING": "0"}
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        everything = os.environ | quiet | settings | {"VAR_DIR": directory, "DATABASE_URL": url}
        done = subprocess.run(command, env=everything, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Waited)


def too_slow(waited: Waited) -> list[str]:
    return [name for name, (p50_ms, _) in waited.items() if p50_ms >= MOST_MS]


def table(waited: dict[str, Waited]) -> str:
    rows = [["ms", *(f"{database} {figure}" for database in waited for figure in ("p50", "p99"))]]
    for name in next(iter(waited.values())):
        rows.append([name, *(f"{ms:.2f}" for of in waited.values() for ms in of[name])])
    return aligned(rows)


if __name__ == "__main__":
    sys.exit(main())
