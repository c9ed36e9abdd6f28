"""`python -m tests.nightly.benchmarks.history`: a walk through all that is stored while candles close, and
what ten walks cost the others. Ends with 1 when the walk is not what `export_candles` writes. How long a
page takes against FastAPI is a case of `tests.nightly.benchmarks.rest`."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tests.nightly.benchmarks.tables import aligned, machine, say, spread
from tests.nightly.figures import note

from .beside import Round, measure
from .walk import Walked, walk_while_candles_close
from .walkers import WALKS

LIMIT, BARS, CLOSING = 10_000, 1_000_000, 20_000
BARS_BESIDE, ROUNDS, SECONDS = 100_000, 3, 10.0
FIGURES = (
    ("quote, p50 ms", "quote_p50_ms", 0.0),
    ("quote, p99 ms", "quote_p99_ms", 5.0),
    ("loop, longest step ms", "longest_step_ms", 2.0),
    ("loop, work p99.9 ms", "work_p999_ms", 2.0),
    ("loop, most work ms", "longest_ms", 0.0),
    ("memory, MB", "memory_mb", 20.0),
)
"""Each with what it may be more beside the walks, where that is judged."""


def main() -> int:
    say(f"{machine()}\n\n")
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        walked = walk_while_candles_close(Path(directory), BARS - CLOSING, CLOSING, LIMIT)
    say(told(walked))
    note("A walk while candles close", "what export_candles writes", told(walked), held=walked.is_equal)
    with TemporaryDirectory(prefix="tickwire-bench-") as directory:
        say(f"\n{table(*measure(directory, BARS_BESIDE, SECONDS, ROUNDS))}")
    return 0 if walked.is_equal else 1


def told(walked: Walked) -> str:
    same = "the same as" if walked.is_equal else "NOT THE SAME AS"
    return (
        f"{walked.bars:,} bars in {walked.pages} pages and {walked.seconds:.1f} s, {walked.closed:,} of them "
        f"closed meanwhile: {same} export_candles writes\n"
    )


def table(alone: list[Round], beside: list[Round]) -> str:
    rows = [["", "alone", f"beside {WALKS} walks", "more", ""]]
    for title, name, most in FIGURES:
        values = [[float(getattr(each, name)) for each in rounds] for rounds in (alone, beside)]
        more = median(values[1]) - median(values[0])
        wanted = f"at most {most:g}" if most else ""
        if most:
            note(f"{title}, more beside {WALKS} walks", wanted, f"{more:+.2f}", held=more <= most)
        rows.append([title, *map(spread, values), f"{more:+.2f}", wanted])
    return aligned(rows)


if __name__ == "__main__":
    sys.exit(main())
