"""`python -m tests.nightly.benchmarks.history`: a walk through all that is stored while candles close, and
what ten walks cost the others. Ends with 1 when the walk is not what `export_candles` writes. How long a
page takes against FastAPI is a case of `tests.nightly.benchmarks.rest`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.nightly.benchmarks.streams.__main__ import machine
from tests.nightly.benchmarks.tables import aligned, say, spread
from tests.nightly.figures import note

from .beside import WALKS, Round, measure
from .walk import Walked, walk_while_candles_close

LIMIT = 10_000
CLOSING = 20_000
MOST_P99_MS, MOST_BLOCK_MS, MOST_MB = 5.0, 2.0, 20.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.benchmarks.history", description=__doc__)
    parser.add_argument("--bars", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round")
    options = parser.parse_args()
    say(f"{machine()}\n\n")
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        walked = walk_while_candles_close(Path(directory), options.bars - CLOSING, CLOSING, LIMIT)
    say(told(walked))
    note("A walk while candles close", "what export_candles writes", told(walked), held=walked.is_equal)
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        say(f"\n{table(*measure(directory, options.bars // 10, options.seconds, options.rounds))}")
    return 0 if walked.is_equal else 1


def told(walked: Walked) -> str:
    same = "the same as" if walked.is_equal else "NOT THE SAME AS"
    return (
        f"{walked.bars:,} bars in {walked.pages} pages and {walked.seconds:.1f} s, {walked.closed:,} of them "
        f"closed meanwhile: {same} export_candles writes\n"
    )


def table(alone: list[Round], beside: list[Round]) -> str:
    def row(title: str, values: list[list[float]], most: float | None, digits: int = 2) -> list[str]:
        more = median(values[1]) - median(values[0])
        wanted = "" if most is None else f"at most {most:g}"
        if most is not None:
            note(f"{title}, more beside {WALKS} walks", wanted, f"{more:+.{digits}f}", held=more <= most)
        return [title, *(spread(each, digits) for each in values), f"{more:+.{digits}f}", wanted]

    def of(name: str) -> list[list[float]]:
        return [[float(getattr(each, name)) for each in rounds] for rounds in (alone, beside)]

    def held(name: str) -> list[list[float]]:
        return [[float(getattr(each.held, name)) for each in rounds] for rounds in (alone, beside)]

    rows = [
        ["", "alone", f"beside {WALKS} walks", "more", ""],
        row("quote, p50 ms", of("quote_p50_ms"), None),
        row("quote, p99 ms", of("quote_p99_ms"), MOST_P99_MS),
        row("loop, longest step ms", held("longest_step_ms"), MOST_BLOCK_MS),
        row("loop, work p99.9 ms", held("work_p999_ms"), MOST_BLOCK_MS),
        row("loop, most work ms", held("longest_ms"), None),
        row("loop late, p99 ms", held("late_p99_ms"), None),
        row("loop late, most ms", held("late_max_ms"), None),
        row("memory, MB", held("memory_mb"), MOST_MB, 0),
    ]
    return aligned(rows)


if __name__ == "__main__":
    sys.exit(main())
