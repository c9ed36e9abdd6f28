"""`python -m tests.nightly.benchmarks.rest`: ours against Node, Rust, C++ and Python, by requests per second
of one core. Ends with 1 when a floor is missed."""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import redis

from tests.nightly.benchmarks.processes import CLIENT_CORE, Peer, measured, provide, wait_until_at_rest
from tests.nightly.benchmarks.tables import Verdict, conclude, machine, say, spread
from tests.programs.installation import SETTINGS
from tests.programs.services import redis_url

from . import report
from .agreement import check_agreement
from .cases import ALL, CASES, LATENCY_CASES, OURS, SHARED, Case
from .load import Load, measure
from .prepare import Prepared
from .servers import NEEDED, running

WARM_UP_S, ALONE_S = 1, 2
ROWS = 100_000
"""Signals, and as many news items."""
Loads = dict[tuple[str, str], list[Load]]


def main() -> int:
    options = read_options()
    provide(NEEDED)
    cases = [case for case in CASES if case.name in options.cases]
    with TemporaryDirectory(prefix="tickwire-bench-") as directory, redis_url() as shared:
        pin_redis(shared)
        say(f"Preparing {ROWS:,} signals and as many news items …\n")
        facts = measured(Prepared, "rest.prepare", ROWS, VAR_DIR=directory)
        environment, wanted = SETTINGS | {"VAR_DIR": directory}, [OURS, *options.peers]
        with running(Path(directory), environment, facts, shared, wanted) as (peers, not_run):
            for name, reason in not_run.items():
                say(f"{name} is not run: {reason}\n")
            check_agreement(peers, cases, facts.key)
            for own in (peer for peer in peers if peer.name in (OURS, SHARED)):
                with own.awake():
                    wait_until_at_rest(own.pid)
            loads = run_rounds(peers, cases, facts.key, options.rounds, options.seconds)
            alone = run_alone(peers, [case for case in LATENCY_CASES if case in cases], facts.key)
    return conclude(*show(loads, not_run, alone))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.benchmarks.rest", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement, after one to warm up")
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, metavar="CASE")
    others = [name for name in ALL if name != OURS]
    parser.add_argument("--peers", nargs="+", choices=others, default=others, metavar="PEER")
    return parser.parse_args()


def pin_redis(url: str) -> None:
    """In service Redis has a core of its own; here it shares the client's."""
    with redis.Redis.from_url(url) as client:
        os.sched_setaffinity(client.info("server")["process_id"], {CLIENT_CORE})


def run_rounds(peers: Sequence[Peer], cases: Sequence[Case], key: str, rounds: int, seconds: int) -> Loads:
    loads: Loads = defaultdict(list)
    for case in cases:
        for number in range(rounds):
            for peer in peers:
                if peer.name in case.servers:
                    with peer.awake():
                        measure(peer, case.path, key, WARM_UP_S, case.connections)
                        load = measure(peer, case.path, key, seconds, case.connections)
                    loads[case.name, peer.name].append(load)
            say(f"{case.name}: round {number + 1} of {rounds}\n")
    return loads


def run_alone(peers: Sequence[Peer], cases: Sequence[Case], key: str) -> dict[tuple[str, str], Load]:
    """How long one client waits that asks again as soon as it is answered."""
    loads = {}
    for case in cases:
        for peer in peers:
            if peer.name in case.servers and peer.name != SHARED:
                with peer.awake():
                    loads[case.name, peer.name] = measure(peer, case.path, key, ALONE_S, connections=1)
    return loads


def show(loads: Loads, not_run: dict[str, str], alone: dict[tuple[str, str], Load]) -> Iterator[Verdict]:
    """Of what was run."""
    judged = report.judge(loads)
    say(f"\n{machine()}\nMedian of the rounds (lowest–highest).\n\n{report.whole(loads, not_run, judged)}\n")
    if alone:
        say(f"{report.latency(alone)}\n")
    for bound, values, verdict, _ in (each for each in judged if each.ratios):
        target = f"{'≥' if bound.is_least else '≤'} {bound.floor:g}, goal {bound.goal:g}"
        name = f"{bound.case}, {bound.figure}: {bound.of} / {bound.against}"
        yield Verdict(name, target, spread(values), verdict != report.BELOW)


if __name__ == "__main__":
    sys.exit(main())
