"""`make bench-growth`: what a message and a request cost with more clients, symbols and instruments, and how
long a start takes. ONLY=clients, symbols or instruments is one part of it. Ends with 1 beyond the floor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.nightly.benchmarks.streams.__main__ import get_ready
from tests.nightly.benchmarks.tables import machine, say
from tests.nightly.figures import note

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
    for each in growths:
        target = f"≤ {each.floor:.2f}, goal {report.GOAL:.2f}"
        note(each.what, target, f"{each.judged:.2f}", held=is_held(each))
        say("" if is_held(each) else f"Beyond the floor of {each.floor}: {each.what}\n")
    return int(not all(map(is_held, growths)))


def is_held(growth: report.Growth) -> bool:
    return round(growth.judged, 2) <= growth.floor


if __name__ == "__main__":
    sys.exit(main())
