"""`make bench-archive`: what keeping ticks costs the engine, at 20,000 ticks a second over 50 instruments.
With and without in turn; the medians of the processor time of the whole process count, writing included."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.nightly.benchmarks.engine.run import Run
from tests.nightly.benchmarks.processes import measured
from tests.nightly.benchmarks.tables import Verdict, conclude, say, spread

INSTRUMENTS, PER_SECOND = 50, 20_000
SECONDS, ROUNDS = int(os.environ.get("SECONDS", "10")), int(os.environ.get("ROUNDS", "3"))
MOST_POINTS = 5.0


def measure(archive: str) -> float:
    """Points of a core."""
    with tempfile.TemporaryDirectory(prefix="tickwire-") as folder:
        load, own = (INSTRUMENTS, PER_SECOND, SECONDS), {"VAR_DIR": folder, "ARCHIVE": archive}
        run = measured(Run, "engine.run", *load, **own)
        is_kept = any(Path(folder).glob("ticks/*.ticks"))
    assert is_kept is (archive == "1"), "the archive was not what it was to be"
    assert run.written == run.pushed, f"{run.pushed - run.written} ticks are not in the database"
    rate = run.ticks / run.wall_s
    assert rate > 0.9 * PER_SECOND, f"the machine took {rate:,.0f} ticks a second"
    return 100 * run.cpu_s / run.wall_s


def main() -> None:
    taken: dict[str, list[float]] = {"0": [], "1": []}
    for _ in range(ROUNDS):
        for archive, points in taken.items():
            points.append(measure(archive))
    without, kept = median(taken["0"]), median(taken["1"])
    say(f"{PER_SECOND:,} ticks a second, {INSTRUMENTS} instruments, points of a core: ")
    say(f"without the archive {spread(taken['0'])}, with it {spread(taken['1'])}\n")
    most = f"at most {MOST_POINTS:g} points of a core"
    more = kept - without
    sys.exit(conclude(Verdict("Keeping ticks", most, f"{more:.1f}", more <= MOST_POINTS)))


if __name__ == "__main__":
    main()
