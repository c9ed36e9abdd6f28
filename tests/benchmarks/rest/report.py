"""The tables and the verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from tests.benchmarks.tables import aligned, spread

from .cases import CASES, SHARED_PART, Case
from .load import Load

OURS, SHARED, FASTAPI, DRF = "ours", "ours, Redis", "FastAPI", "DRF + ORM"
NAMES = (OURS, SHARED, FASTAPI, DRF)
RATIOS = ((OURS, FASTAPI), (SHARED, FASTAPI), (OURS, DRF))

Rounds = Mapping[tuple[str, str], Sequence[Load]]
"""By case and server, one load a round."""


def ratios(rounds: Rounds, case: Case, ours: str, peer: str) -> list[float]:
    """One a round, by processor time: a machine with other work to do cheats on the wall clock."""
    pairs = zip(rounds[case.name, ours], rounds[case.name, peer], strict=True)
    return [one.per_cpu_second / other.per_cpu_second for one, other in pairs]


def wall_clock(rounds: Rounds) -> str:
    rows = [["requests/s", *NAMES]]
    for case in CASES:
        speeds = (spread([load.per_second for load in rounds[case.name, name]]) for name in NAMES)
        rows.append([case.name, *speeds])
    return aligned(rows)


def processor_time(rounds: Rounds) -> str:
    rows = [["requests per CPU second", *NAMES, *(f"{ours} : {peer}" for ours, peer in RATIOS)]]
    for case in CASES:
        speeds = (spread([load.per_cpu_second for load in rounds[case.name, name]]) for name in NAMES)
        rows.append([case.name, *speeds, *(spread(ratios(rounds, case, *pair), 1) for pair in RATIOS)])
    return aligned(rows)


def latency(loads: Mapping[tuple[str, str], Load]) -> str:
    rows = [["one client", "p50 ms", "p99 ms"]]
    rows += [
        [f"{case}, {name}", f"{load.p50_ms:.2f}", f"{load.p99_ms:.2f}"]
        for (case, name), load in loads.items()
    ]
    return aligned(rows)


def shares(rounds: Rounds) -> str:
    """Who had how much of a core: what the figures are worth."""
    every = [load for loads in rounds.values() for load in loads]
    servers, client = [load.server_busy for load in every], max(load.client_busy for load in every)
    limit = "it may have been the limit" if client > 0.9 else "it was never the limit"
    return (
        f"Servers had {min(servers):.0%} to {max(servers):.0%} of their core, less where others used it.\n"
        f"wrk used at most {client:.0%} of its own: {limit}.\n"
    )


def verdicts(rounds: Rounds) -> Iterator[tuple[bool, str]]:
    """Whether each floor against FastAPI is held."""
    for ours, part in ((OURS, 1.0), (SHARED, SHARED_PART)):
        for case in CASES:
            reached, floor = median(ratios(rounds, case, ours, FASTAPI)), case.floor * part
            word = "PASS " if reached >= floor else "BELOW"
            yield (
                reached >= floor,
                f"{word} {case.name}: {ours} is {reached:.2f} × FastAPI, the floor is {floor:.2f}",
            )
