"""`python -m tests.nightly.benchmarks.rest`: ours against Node, Rust, C++ and Python, by requests per second
of one core. Ends with 1 when a floor is missed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import redis

from tests.nightly.benchmarks.packages import provide
from tests.nightly.benchmarks.servers import CLIENT_CORE, Peer
from tests.nightly.benchmarks.streams.__main__ import machine
from tests.nightly.benchmarks.streams.report import spread
from tests.nightly.benchmarks.tables import say
from tests.nightly.figures import note
from tests.programs.installation import SETTINGS
from tests.programs.services import redis_url

from . import report, short_path
from .agreement import check_agreement
from .cases import ALL, CASES, LATENCY_CASES, QUOTE, Case
from .load import Load, measure
from .names import OURS, SHARED
from .prepare import Prepared
from .servers import NEEDED, Servers, running

WARM_UP_S = 1


def main() -> int:
    options = read_options()
    for package in provide(NEEDED):
        say(f"{package} is not there: apt-get install {package}\n")
    cases = [case for case in CASES if case.name in options.cases]
    with prepared(options.rows) as servers, running(servers, [OURS, *options.peers]) as (peers, not_run):
        for name, reason in not_run.items():
            say(f"{name} is not run: {reason}\n")
        check(peers, cases, servers.key)
        rounds = run_rounds(peers, cases, servers.key, options.rounds, options.seconds)
        alone = run_alone(peers, [case for case in LATENCY_CASES if case in cases], servers.key)
    return conclude(rounds, not_run, alone)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.benchmarks.rest", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=int, default=3, help="of each measurement, after a second to warm up"
    )
    parser.add_argument("--rows", type=int, default=100_000, help="signals, and as many news items")
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, metavar="CASE")
    others = [name for name in ALL if name != OURS]
    parser.add_argument("--peers", nargs="+", choices=others, default=others, metavar="PEER")
    return parser.parse_args()


@contextmanager
def prepared(rows: int) -> Iterator[Servers]:
    with TemporaryDirectory(prefix="tickwire-bench-") as directory, redis_url() as shared:
        pin_redis(shared)
        environment = SETTINGS | {"VAR_DIR": directory}
        say(f"Preparing {rows:,} signals and as many news items …\n")
        yield Servers(Path(directory), environment, prepare(environment, rows), shared)


def prepare(environment: dict[str, str], rows: int) -> Prepared:
    command = [sys.executable, "-m", "tests.nightly.benchmarks.rest.prepare", str(rows)]
    done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Prepared)


def pin_redis(url: str) -> None:
    """In service Redis has a core of its own; here it shares the client's."""
    with redis.Redis.from_url(url) as client:
        os.sched_setaffinity(client.info("server")["process_id"], {CLIENT_CORE})


def check(peers: Sequence[Peer], cases: Sequence[Case], key: str) -> None:
    check_agreement(peers, cases, key)
    ours = peers[0]
    with ours.awake():
        if not short_path.is_on(ours.port, QUOTE.path, key):
            raise RuntimeError("Ours does not answer on the short path, which is what is measured.")


def run_rounds(
    peers: Sequence[Peer], cases: Sequence[Case], key: str, rounds: int, seconds: int
) -> report.Rounds:
    loads: dict[tuple[str, str], list[Load]] = defaultdict(list)
    for case in cases:
        for number in range(rounds):
            for peer in peers:
                if peer.name in case.servers:
                    loads[case.name, peer.name].append(warm_and_measure(peer, case, key, seconds))
            say(f"{case.name}: round {number + 1} of {rounds}\n")
    return loads


def warm_and_measure(peer: Peer, case: Case, key: str, seconds: int) -> Load:
    with peer.awake():
        measure(peer, case.path, key, WARM_UP_S, case.connections)
        return measure(peer, case.path, key, seconds, case.connections)


def run_alone(peers: Sequence[Peer], cases: Sequence[Case], key: str) -> dict[tuple[str, str], Load]:
    """How long one client waits that asks again as soon as it is answered."""
    loads = {}
    for case in cases:
        for peer in peers:
            if peer.name in case.servers and peer.name != SHARED:
                with peer.awake():
                    loads[case.name, peer.name] = measure(peer, case.path, key, 2, connections=1)
    return loads


def conclude(rounds: report.Rounds, not_run: dict[str, str], alone: dict[tuple[str, str], Load]) -> int:
    judged = report.judge(rounds)
    say(f"\n{machine()}\nMedian of the rounds (lowest–highest).\n\n")
    say(report.whole(rounds, not_run, judged))
    if alone:
        say(f"\n{report.latency(alone)}")
    for bound, values, verdict, _ in judged:
        measured = spread(values) if values else "not run"
        sign = "≥" if bound.is_least else "≤"
        target = f"{sign} {bound.floor:g}, goal {bound.goal:g}"
        name = f"{bound.case}, {bound.figure}: {bound.of} / {bound.against}"
        note(name, target, measured, held=verdict in (report.Verdict.REACHED, report.Verdict.MISSED))
    failures = list(report.failures(judged))
    say("".join(["\n", *failures]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
