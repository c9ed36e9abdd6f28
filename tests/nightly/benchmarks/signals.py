"""`python -m tests.nightly.benchmarks.signals`: what watching costs a tick, and how that grows from 100 to
100,000 active signals; what a closing costs. Ends with 1 when 10,000 at the promised rate need half a
core."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from tempfile import TemporaryDirectory

import msgspec

from tests.nightly.benchmarks.tables import aligned, say, spread
from tests.nightly.figures import note
from tests.programs.services import database_url

ROUNDS = 3
GROWTH = (0, 100, 1_000, 10_000, 100_000)
PROMISED, PER_SECOND, MOST_BUSY = 10_000, 5_000, 0.5


class Run(msgspec.Struct):
    us_per_tick: float
    hits_per_second: float
    kb_per_signal: float


class Closings(msgspec.Struct):
    one_per_second: float
    many_per_second: float


def main() -> int:
    say("Watching …\n")
    runs = {active: [run(active) for _ in range(ROUNDS)] for active in GROWTH}
    say(f"\n{table(runs)}\nClosing …\n")
    say(f"\n{closing_table()}\n")
    busiest = max(one.us_per_tick for one in runs[PROMISED]) * PER_SECOND / 1e6
    held = busiest < MOST_BUSY
    what = f"{PROMISED:,} active signals at {PER_SECOND:,} ticks/s"
    note(what, f"< {MOST_BUSY:.0%} of a core", f"{busiest:.1%}", held=held)
    say(
        f"{PROMISED:,} active signals over 50 instruments at {PER_SECOND:,} ticks/s: {busiest:.1%} of a core "
        f"(less than {MOST_BUSY:.0%}): {'held' if held else 'NOT HELD'}\n"
    )
    return 0 if held else 1


def table(runs: dict[int, list[Run]]) -> str:
    rows = [
        ["active signals", "CPU µs a tick", "of a core at 5,000 ticks/s", "hits a second", "KB a signal"],
        *(
            [
                f"{active:,}",
                spread([one.us_per_tick for one in own], 2),
                spread([one.us_per_tick * PER_SECOND / 1e4 for one in own], 2) + " %",
                spread([one.hits_per_second for one in own], 1),
                spread([one.kb_per_signal for one in own], 2),
            ]
            for active, own in runs.items()
        ),
    ]
    return aligned(rows)


def closing_table() -> str:
    rows = [["", "one at a time", "fifty at a time"]]
    for place in ("SQLite", "PostgreSQL"):
        made = [closings(place) for _ in range(ROUNDS)]
        per_second = [
            spread([getattr(one, name) for one in made], 0) for name in ("one_per_second", "many_per_second")
        ]
        rows.append([f"{place}: closed a second", *per_second])
    return aligned(rows)


def run(active: int) -> Run:
    return msgspec.json.decode(process("watch", str(active)), type=Run)


def closings(place: str) -> Closings:
    """Each in a database of its own."""
    with nullcontext("") if place == "SQLite" else database_url() as url:
        return msgspec.json.decode(process("close", url=url), type=Closings)


def process(*arguments: str, url: str = "") -> bytes:
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "DEMO": "0", "LOG_LEVEL": "WARNING"}
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        places = {"VAR_DIR": directory, "DATABASE_URL": url, "REDIS_URL": ""}
        command = [sys.executable, "-m", "tests.nightly.benchmarks.signals_run", *arguments]
        done = subprocess.run(command, env=os.environ | settings | places, stdout=subprocess.PIPE, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
