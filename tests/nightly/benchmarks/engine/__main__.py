"""`python -m tests.nightly.benchmarks.engine`: how many ticks the engine takes, and what of it costs how
much. Ends with 1 when the promised rate needs more than half a core, or when a tick is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from types import MappingProxyType

import msgspec

from tests.nightly.benchmarks.tables import aligned, say, spread
from tests.nightly.figures import note
from tests.programs.services import database_url, redis_url

from . import candles_db
from .run import Run

ROUNDS, SECONDS = 3, 5
PROMISED = 50, 20_000
"""Instruments, and ticks a second of all of them together."""
FLAT_OUT = 0
LOADS = (PROMISED, (50, FLAT_OUT), (500, 20_000), (500, FLAT_OUT))
GROWTH = (10, 50, 100, 500)
MOST_BUSY = 0.5
EMBEDDED, SEPARATE = "SQLite, one process", "PostgreSQL and Redis"
Loads = dict[tuple[str, tuple[int, int]], list[Run]]


def main() -> int:
    say("Stage by stage …\n")
    stages = {many: [run(many) for _ in range(ROUNDS)] for many in GROWTH}
    say(f"\n{stage_table(stages)}\nA whole engine under load …\n")
    loads: Loads = {(place, load): [] for load in LOADS for place in (EMBEDDED, SEPARATE)}
    for (place, load), runs in loads.items():
        for _ in range(ROUNDS):
            with services(place) as environment:
                runs.append(run(*load, SECONDS, environment))
    say(f"\n{load_table(loads)}\nCandles into the database …\n")
    candles_db.main()
    verdicts = list(judge(loads))
    for held, told in verdicts:
        figure, _, measured = told.partition(": ")
        note(figure, "as it says", measured or told, held=held)
    say("\n" + "".join(f"{line}\n" for _, line in verdicts))
    return 0 if all(held for held, _ in verdicts) else 1


@contextmanager
def services(place: str) -> Iterator[dict[str, str]]:
    """Fresh services for each run, so that none finds what another has left."""
    with ExitStack() as stack:
        if place == EMBEDDED:
            yield {"DATABASE_URL": "", "REDIS_URL": ""}
        else:
            yield {
                "DATABASE_URL": stack.enter_context(database_url()),
                "REDIS_URL": stack.enter_context(redis_url()),
            }


def run(
    many: int, per_second: int = 0, seconds: int = 0, environment: Mapping[str, str] = MappingProxyType({})
) -> Run:
    command = [
        sys.executable,
        "-m",
        "tests.nightly.benchmarks.engine.run",
        str(many),
        str(per_second),
        str(seconds),
    ]
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "DEMO": "0", "LOG_LEVEL": "WARNING"}
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        everything = os.environ | settings | dict(environment) | {"VAR_DIR": directory}
        done = subprocess.run(command, env=everything, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Run)


def stage_table(stages: dict[int, list[Run]]) -> str:
    rows = [["CPU microseconds a tick", *(f"{many} instruments" for many in stages)]]
    for name in stages[GROWTH[0]][0].stages:
        rows.append([name, *(spread([one.stages[name] for one in runs], 2) for runs in stages.values())])
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


def judge(loads: Loads) -> Iterator[tuple[bool, str]]:
    every = [one for runs in loads.values() for one in runs]
    sent, written = sum(one.pushed for one in every), sum(one.written for one in every)
    yield verdict(f"{sent - written:,} of {sent:,} ticks are lost", held=sent == written)
    many, rate = PROMISED
    for place in (EMBEDDED, SEPARATE):
        busiest = max(one.cpu_s / one.wall_s for one in loads[place, PROMISED])
        told = (
            f"{rate:,} ticks/s of {many} instruments need {busiest:.0%} of a core; {MOST_BUSY:.0%} is allowed"
        )
        yield verdict(f"{place}: {told}", held=busiest <= MOST_BUSY)


def verdict(told: str, *, held: bool) -> tuple[bool, str]:
    return held, f"{'PASS ' if held else 'BELOW'} {told}"


if __name__ == "__main__":
    sys.exit(main())
