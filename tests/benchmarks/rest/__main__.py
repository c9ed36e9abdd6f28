"""`python -m tests.benchmarks.rest`: ours against FastAPI and plain DRF, requests per second of one core.
Ends with 1 when a floor is missed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import redis

from tests.benchmarks.servers import CLIENT_CORE, Peer, serving
from tests.benchmarks.tables import say
from tests.programs.services import redis_url

from . import report
from .agreement import meaning
from .cases import CASES, LATENCY_CASES, Case
from .load import Load, measure
from .prepare import Prepared

APPLICATIONS = {
    report.OURS: ("config.asgi:application", "--lifespan", "on"),
    report.SHARED: ("config.asgi:application", "--lifespan", "on"),
    report.FASTAPI: ("tests.benchmarks.rest.peers.fastapi_app:make_app", "--factory"),
    report.DRF: ("django.core.asgi:get_asgi_application", "--factory"),
}
WARM_UP_S = 1


def main() -> int:
    options = read_options()
    with TemporaryDirectory(prefix="tickwire-bench-") as directory, redis_url() as shared:
        pin_redis(shared)
        environment = {
            "VAR_DIR": directory,
            "DEMO": "0",
            "ACCESS_LOG": "0",
            "LOG_LEVEL": "WARNING",
            "REDIS_URL": "",
        }
        say(f"Preparing {options.rows:,} signals and as many news items …\n")
        facts = prepare(environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}, options.rows)
        with running(Path(directory), environment, facts, shared) as peers:
            check_agreement(peers, facts.key)
            rounds = run_rounds(peers, facts.key, options.rounds, options.seconds)
            alone = run_alone(peers, facts.key, options.seconds)
    return conclude(rounds, alone)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rest", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=int, default=3, help="of each measurement, after a second to warm up"
    )
    parser.add_argument("--rows", type=int, default=100_000, help="signals, and as many news items")
    return parser.parse_args()


def prepare(environment: dict[str, str], rows: int) -> Prepared:
    command = [sys.executable, "-m", "tests.benchmarks.rest.prepare", str(rows)]
    done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Prepared)


@contextmanager
def running(
    directory: Path, environment: dict[str, str], facts: Prepared, shared: str
) -> Iterator[list[Peer]]:
    """All of them at once, asleep but for the one that is asked."""
    for_peers = {"BENCH_DATABASE": facts.database, "BENCH_PEPPER": facts.pepper, "BENCH_KEY": facts.key}
    own = {
        report.SHARED: {"REDIS_URL": shared},
        report.FASTAPI: for_peers,
        report.DRF: for_peers | {"DJANGO_SETTINGS_MODULE": "tests.benchmarks.rest.peers.drf_settings"},
    }
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                serving(name, application, environment | own.get(name, {}), directory / f"{number}.log")
            )
            for number, (name, application) in enumerate(APPLICATIONS.items())
        ]


def pin_redis(url: str) -> None:
    """In service Redis has a core of its own; here it shares the client's."""
    with redis.Redis.from_url(url) as client:
        os.sched_setaffinity(client.info("server")["process_id"], {CLIENT_CORE})


def check_agreement(peers: Sequence[Peer], key: str) -> None:
    """Who answers something else is not compared."""
    for case in CASES:
        ours, *others = ((peer.name, meaning(ask(peer, case, key))) for peer in peers)
        for name, body in others:
            if body != ours[1]:
                raise RuntimeError(f"{name} answers {case.path} with another body than ours.")


def ask(peer: Peer, case: Case, key: str) -> object:
    request = urllib.request.Request(peer.url + case.path, headers={"X-API-Key": key})
    with peer.awake(), urllib.request.urlopen(request, timeout=10) as response:
        return msgspec.json.decode(response.read())


def run_rounds(peers: Sequence[Peer], key: str, rounds: int, seconds: int) -> report.Rounds:
    loads: dict[tuple[str, str], list[Load]] = defaultdict(list)
    for case in CASES:
        for number in range(rounds):
            for peer in peers:
                with peer.awake():
                    measure(peer, case.path, key, WARM_UP_S)
                    loads[case.name, peer.name].append(measure(peer, case.path, key, seconds))
            say(f"{case.name}: round {number + 1} of {rounds}\n")
    return loads


def run_alone(peers: Sequence[Peer], key: str, seconds: int) -> dict[tuple[str, str], Load]:
    """How long one client waits that asks again as soon as it is answered."""
    loads = {}
    for case in LATENCY_CASES:
        for peer in peers:
            with peer.awake():
                measure(peer, case.path, key, WARM_UP_S, connections=1)
                loads[case.name, peer.name] = measure(peer, case.path, key, seconds, connections=1)
    return loads


def conclude(rounds: report.Rounds, alone: dict[tuple[str, str], Load]) -> int:
    say("\nOne core for the server, one for wrk: median of the rounds (lowest–highest)\n\n")
    tables = (report.wall_clock(rounds), report.processor_time(rounds), report.latency(alone))
    say("\n".join((*tables, report.shares(rounds), "")))
    verdicts = list(report.verdicts(rounds))
    say("".join(f"{line}\n" for _, line in verdicts))
    return 0 if all(held for held, _ in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
