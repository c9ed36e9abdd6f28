"""`make bench-streams`: the product and its peers in turn, in rounds, the tables of docs/performance.md.
QUICK=1 is one round; ONLY="own sets" runs the cases whose name begins with that. Ends with 1 when a goal
is missed."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.nightly.benchmarks.processes import CLIENT_CORE, SERVER_CORE
from tests.nightly.benchmarks.tables import Verdict, conclude, machine, say, spread

from . import report
from .cases import CASES, GOALS, Case
from .load import Load, Pace, measure
from .places import prepare
from .servers import Product, Start, servers

# In all: on a machine that is never calm they would only take time.
TRIES, RETRIES = 4, 80
Loads = dict[tuple[str, str], list[Load]]


def main() -> int:
    chosen = [case for case in CASES if case.name.startswith(os.environ.get("ONLY", ""))]
    most = 1 if os.environ.get("QUICK") else max((case.rounds for case in chosen), default=0)
    with ready() as starts, at_pace() as pace:
        bench = Bench(starts, pace)
        for number, case in in_rounds(chosen, most):
            bench.run(case)
            say(f"Round {number} of {min(most, case.rounds)}: {case.name}\n")
    say(f"\n{report.whole(bench.loads, bench.not_run, machine())}\n")
    return conclude(*verdicts(bench.loads))


def verdicts(loads: Loads) -> Iterator[Verdict]:
    for goal in GOALS:
        if values := report.reached(loads, goal, goal.figure):
            against = f" / {goal.against}" if goal.against else ""
            name = f"{goal.case}, {report.WORDS[goal.figure]}: {goal.of}{against}"
            target = f"{'≥' if goal.is_floor else '≤'} {goal.bound:g}"
            yield Verdict(name, target, spread(values), report.is_held(goal, values))


def in_rounds(cases: Sequence[Case], most: int) -> Iterator[tuple[int, Case]]:
    """All in turn, and in the end those that take more rounds than others."""
    for number in range(1, most + 1):
        yield from ((number, case) for case in cases if number <= case.rounds)


@contextmanager
def ready() -> Iterator[dict[str, Start]]:
    """How each server is started."""
    get_ready()
    with TemporaryDirectory(prefix="tickwire-streams-") as directory:
        # nginx and PostgreSQL give their rights away, and must still come in.
        Path(directory).chmod(0o755)
        yield servers(Path(directory), Product(Path(directory)))


def get_ready() -> None:
    """All that is needed is built and installed, and as many files as may be can be open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    prepare()


@contextmanager
def at_pace() -> Iterator[Pace]:
    pace = Pace((SERVER_CORE, CLIENT_CORE))
    try:
        yield pace
    finally:
        pace.stop()


class Bench:
    def __init__(self, starts: dict[str, Start], pace: Pace, retries: int = RETRIES) -> None:
        self._starts, self._pace = starts, pace
        self.loads: Loads = defaultdict(list)
        self.not_run: dict[str, str] = {}
        self._retries = retries

    def run(self, case: Case) -> None:
        for server in case.servers:
            if server in self.not_run:
                continue
            try:
                self.loads[case.name, server].append(self._calmest(server, case))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                self._give_up(server, error)

    def _calmest(self, server: str, case: Case) -> Load:
        """Again while others use the cores, and in the end the one that was disturbed least."""
        tried = [self._measure(server, case)]
        while tried[-1].is_disturbed and self._retries and len(tried) < TRIES:
            self._retries -= 1
            tried.append(self._measure(server, case))
        return min(tried, key=lambda load: load.disturbance)

    def _measure(self, server: str, case: Case) -> Load:
        with self._starts[server]() as target:
            start = time.monotonic()
            load = measure(target, case.options)
        return msgspec.structs.replace(load, slowed=self._pace.slowed(start))

    def _give_up(self, server: str, error: Exception) -> None:
        """A peer that does not run is named; the product must run."""
        if server.startswith("Tickwire"):
            raise error
        self.not_run[server] = (str(error).strip() or type(error).__name__).splitlines()[-1]
        say(f"{server} is not run: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
