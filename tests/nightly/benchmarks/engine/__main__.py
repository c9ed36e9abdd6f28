"""`python -m tests.nightly.benchmarks.engine`: how many ticks the engine takes, and what of it costs how
much. Ends with 1 when the promised rate needs more than half a core, or when a tick is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.nightly.benchmarks.processes import measured
from tests.nightly.benchmarks.tables import Verdict, aligned, conclude, say, spread
from tests.programs.services import database_url, redis_url

from . import candles_db
from .run import Run

ROUNDS, SECONDS = 3, 5
PROMISED = 50, 20_000
"""Instruments, and ticks a second of all of them together."""
FLAT_OUT = 0
LOADS = (PROMISED, (50, FLAT_OUT), (500, 20_000), (500, FLAT_OUT))
GROWTH = (10, 50, 500)
MOST_BUSY = 0.5
EMBEDDED, SEPARATE = "SQLite, one process", "PostgreSQL and Redis"
Loads = dict[tuple[str, tuple[int, int]], list[Run]]


def main() -> int:
    say("Stage by stage …\n")
    stages = {many: [measured(Run, "engine.run", many, 0, 0) for _ in range(ROUNDS)] for many in GROWTH}
    say(f"\n{stage_table(stages)}\nA whole engine under load …\n")
    loads: Loads = {(place, load): [] for load in LOADS for place in (EMBEDDED, SEPARATE)}
    for (place, load), runs in loads.items():
        for _ in range(ROUNDS):
            with services(place) as environment:
                runs.append(measured(Run, "engine.run", *load, SECONDS, **environment))
    say(f"\n{load_table(loads)}\nCandles into the database …\n{candles_db.tables()}\n")
    return conclude(*judge(loads))


@contextmanager
def services(place: str) -> Iterator[dict[str, str]]:
    """Fresh services for each run, so that none finds what another has left."""
    if place == EMBEDDED:
        yield {}
    else:
        with database_url() as database, redis_url() as redis:
            yield {"DATABASE_URL": database, "REDIS_URL": redis}


def stage_table(stages: dict[int, list[Run]]) -> str:
    rows = [["CPU microseconds a tick", *(f"{many} instruments" for many in stages)]]
    for name in stages[GROWTH[0]][0].stages:
        rows.append([name, *(spread([one.stages[name] for one in runs]) for runs in stages.values())])
    return aligned(rows)


def load_table(loads: Loads) -> str:
    rows = [["", "ticks/s", "of a core, %", "ticks per CPU second", "longest wait, ms"]]
    for (place, (many, rate)), runs in loads.items():
        wanted = f"{rate:,} ticks/s" if rate else "flat out"
        rows.append([f"{many} instruments, {wanted}, {place}", *figures(runs)])
    return aligned(rows)


def figures(runs: Sequence[Run]) -> list[str]:
    return [
        spread([one.ticks / one.wall_s for one in runs]),
        spread([100 * one.cpu_s / one.wall_s for one in runs]),
        spread([one.ticks / one.cpu_s for one in runs]),
        spread([1000 * one.longest_wait_s for one in runs]),
    ]


def judge(loads: Loads) -> Iterator[Verdict]:
    every = [one for runs in loads.values() for one in runs]
    sent, written = sum(one.pushed for one in every), sum(one.written for one in every)
    yield Verdict(f"Ticks lost of {sent:,}", "none", f"{sent - written:,}", sent == written)
    many, rate = PROMISED
    for place in (EMBEDDED, SEPARATE):
        busiest = max(one.cpu_s / one.wall_s for one in loads[place, PROMISED])
        what = f"{rate:,} ticks/s of {many} instruments, {place}"
        yield Verdict(what, f"{MOST_BUSY:.0%} of a core", f"{busiest:.0%}", busiest <= MOST_BUSY)


if __name__ == "__main__":
    sys.exit(main())
