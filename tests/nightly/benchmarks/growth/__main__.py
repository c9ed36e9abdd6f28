"""`make bench-growth`: what a message and a request cost with more clients, symbols and instruments, and how
long a start takes. ONLY=clients, symbols or instruments is one part of it. Ends with 1 beyond the floor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.nightly.benchmarks.streams.__main__ import get_ready
from tests.nightly.benchmarks.tables import Verdict, conclude, machine, say

from . import report, rest, streams

PARTS = {"clients": streams.CLIENTS, "symbols": streams.SYMBOLS}


def main() -> int:
    only = os.environ.get("ONLY", "")
    chosen = [sizes for name, sizes in PARTS.items() if only in ("", name)]
    growths = []
    with TemporaryDirectory(prefix="tickwire-growth-") as directory:
        if chosen:
            get_ready()
            growths += streams.measure(Path(directory), chosen)
        if only in ("", "instruments"):
            with rest.services(Path(directory)) as running:
                say(f"\n{rest.starts(running)}\n")
                growths += rest.measure(running, Path(directory))
    say(f"\n{machine()}\n\n{report.table(growths)}")
    return conclude(*map(verdict, growths))


def verdict(growth: report.Growth) -> Verdict:
    target, judged = f"≤ {growth.floor:.2f}, goal {report.GOAL:.2f}", round(growth.judged, 2)
    return Verdict(growth.what, target, f"{judged:.2f}", judged <= growth.floor)


if __name__ == "__main__":
    sys.exit(main())
