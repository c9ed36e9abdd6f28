"""`make bench-streams-soak`: 10,000 connections in one process, alive for ten minutes of heartbeats, and then
as fast as C's. MINUTES=1 is a shorter look. Ends with 1 when something is missed."""

from __future__ import annotations

import os
import sys
from statistics import median

from tests.nightly.benchmarks.tables import Verdict, conclude, machine, say, spread

from .__main__ import ready
from .cases import LIMIT, OURS
from .load import Load, measure
from .servers import Start

CLIENTS, TICKS_PER_S, ROUNDS = 10_000, 5, 3
MOST_OF_LIMIT = 1.7
# One for each ten seconds of silence, the last ten not counted.
BEATS_A_MINUTE = 5
LOADED = {"clients": CLIENTS, "rate": TICKS_PER_S, "warm": 2, "seconds": 10}


def main() -> int:
    minutes = float(os.environ.get("MINUTES", "10"))
    with ready() as starts:
        say(f"{machine()}\n{CLIENTS:,} connections for {minutes:g} minutes …\n")
        soaked = run(starts[OURS], hold=60 * minutes, beats=1)
        say(f"{told(soaked)}\n")
        pairs = [(run(starts[OURS]), run(starts[LIMIT])) for _ in range(ROUNDS)]
    ratios = [ours.p99_ms / limit.p99_ms for ours, limit in pairs]
    ours, limit = (spread([load.p99_ms for load in loads]) for loads in zip(*pairs, strict=True))
    say(f"p99 at {CLIENTS * TICKS_PER_S:,} messages/s: ours {ours} ms, C {limit} ms\n")
    is_soon = median(ratios) <= MOST_OF_LIMIT
    is_alive = not soaked.ended and not soaked.missing and soaked.beats >= BEATS_A_MINUTE * minutes
    return conclude(
        Verdict("p99 of ticks", f"≤ {MOST_OF_LIMIT} of C's", spread(ratios), is_soon),
        Verdict("Streams kept", "none ended, none missing, all heartbeats", told(soaked), is_alive),
    )


def run(start: Start, **options: float) -> Load:
    with start() as target:
        return measure(target, LOADED | options)


def told(load: Load) -> str:
    return (
        f"{load.ended:,} ended, every one had {load.beats} heartbeats or more, {load.missing:,} messages are "
        f"missing; {load.connection_kb:.1f} KB each; p99 then {load.p99_ms:.1f} ms."
    )


if __name__ == "__main__":
    sys.exit(main())
