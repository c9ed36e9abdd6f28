"""`make bench-growth`: what a message and a request cost with more clients, symbols and instruments, and how
long a start takes. ONLY=clients, symbols or instruments is one part of it. Ends with 1 beyond the floor."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.nightly.benchmarks.streams.__main__ import machine
from tests.nightly.benchmarks.streams.places import prepare
from tests.nightly.benchmarks.tables import say
from tests.nightly.figures import note

from . import report, rest, streams

PARTS = {"clients": streams.CLIENTS, "symbols": streams.SYMBOLS}


def main() -> int:
    only = os.environ.get("ONLY", "")
    chosen = [sizes for name, sizes in PARTS.items() if only in ("", name)]
    growths = []
    with TemporaryDirectory(prefix="tickwire-growth-") as directory:
        if chosen:
            growths += of_streams(Path(directory), chosen)
        if only in ("", "instruments"):
            with rest.services(Path(directory)) as running:
                say(f"\n{rest.starts(running)}\n")
                growths += rest.measure(running, Path(directory))
    say(f"\n{machine()}\n\n{report.table(growths)}")
    for each in growths:
        measured, held = f"{each.judged:.2f}", round(each.judged, 2) <= each.floor
        note(each.what, f"≤ {each.floor:.2f}, goal {report.GOAL:.2f}", measured, held=held)
    beyond = report.beyond_floor(growths)
    say("".join(f"Beyond the floor of {growth.floor}: {growth.what}\n" for growth in beyond))
    return 1 if beyond else 0


def of_streams(directory: Path, chosen: list[streams.Sizes]) -> list[report.Growth]:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    prepare()
    return streams.measure(directory, chosen)


if __name__ == "__main__":
    sys.exit(main())
