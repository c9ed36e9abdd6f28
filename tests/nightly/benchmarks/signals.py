"""`python -m tests.nightly.benchmarks.signals`: what watching costs a tick, and how that grows from 100 to
100,000 active signals; what a closing costs. Ends with 1 when 10,000 at the promised rate need half a
core."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import msgspec

from tests.nightly.benchmarks.processes import measured
from tests.nightly.benchmarks.tables import Verdict, aligned, conclude, say, spread
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
    runs = {
        active: [measured(Run, "signals_run", "watch", active) for _ in range(ROUNDS)] for active in GROWTH
    }
    say(f"\n{table(runs)}\nClosing …\n")
    say(f"\n{closing_table()}\n")
    busiest = max(one.us_per_tick for one in runs[PROMISED]) * PER_SECOND / 1e6
    what, target = f"{PROMISED:,} active signals at {PER_SECOND:,} ticks/s", f"< {MOST_BUSY:.0%} of a core"
    return conclude(Verdict(what, target, f"{busiest:.1%}", busiest < MOST_BUSY))


def table(runs: dict[int, list[Run]]) -> str:
    rows = [["active signals", "CPU µs a tick", "of a core at 5,000 ticks/s", "hits a second", "KB a signal"]]
    for active, own in runs.items():
        us = [one.us_per_tick for one in own]
        share = spread([each * PER_SECOND / 1e4 for each in us])
        others = (
            spread([getattr(one, name) for one in own]) for name in ("hits_per_second", "kb_per_signal")
        )
        rows.append([f"{active:,}", spread(us), f"{share} %", *others])
    return aligned(rows)


def closing_table() -> str:
    rows = [["", "one at a time", "fifty at a time"]]
    for place in ("SQLite", "PostgreSQL"):
        made = [closings(place) for _ in range(ROUNDS)]
        names = ("one_per_second", "many_per_second")
        rows.append(
            [f"{place}: closed a second", *(spread([getattr(one, name) for one in made]) for name in names)]
        )
    return aligned(rows)


def closings(place: str) -> Closings:
    """Each in a database of its own."""
    with nullcontext("") if place == "SQLite" else database_url() as url:
        return measured(Closings, "signals_run", "close", DATABASE_URL=url)


if __name__ == "__main__":
    sys.exit(main())
