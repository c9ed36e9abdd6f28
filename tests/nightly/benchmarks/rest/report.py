"""The tables, as docs/performance.md holds them, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from tests.nightly.benchmarks.tables import Rounds, aligned, markdown, ratios, spread

from .cases import BOUNDS, CASES, OURS, Bound, Case
from .load import Load

REACHED, MISSED, BELOW, NOT_RUN = "reached", "**goal missed**", "**floor missed**", "not run"
CLIENT_LIMIT = 0.9
COLUMNS = {
    "requests/s of processor time": "per_cpu_second",
    "requests/s": "per_second",
    "p50 ms": "p50_ms",
    "p99 ms": "p99_ms",
}


class Judged(NamedTuple):
    bound: Bound
    ratios: list[float]
    verdict: str
    by_wall_clock: list[float]
    """The same for what clients saw, which says more about other work on the machine."""


def judge(rounds: Rounds) -> list[Judged]:
    judged = []
    for bound in BOUNDS:
        values = ratios(rounds, bound.case, bound.figure, bound.of, bound.against)
        seen = ratios(rounds, bound.case, "per_second", bound.of, bound.against) if bound.is_least else []
        judged.append(Judged(bound, values, verdict_of(bound, values), seen))
    return judged


def verdict_of(bound: Bound, values: list[float]) -> str:
    if not values:
        return NOT_RUN
    # As the table shows it.
    middle = round(median(values), 2)
    beyond_goal, beyond_floor = (
        middle >= mark if bound.is_least else middle <= mark for mark in (bound.goal, bound.floor)
    )
    return REACHED if beyond_goal else MISSED if beyond_floor else BELOW


def bounds_table(judged: Iterable[Judged]) -> str:
    """By processor time, which other work on the machine changes least."""
    rows = [["", "against", "floor", "goal", "ratio", "by the wall clock", ""]]
    for bound, values, verdict, seen in judged:
        sign = "≥" if bound.is_least else "≤"
        of = "" if bound.of == OURS else f": {bound.of}"
        p99 = ", p99" if bound.figure == "p99_ms" else ""
        shown = [spread(each) if each else "–" for each in (values, seen)]
        marks = [f"{sign} {mark:g}" for mark in (bound.floor, bound.goal)]
        rows.append([bound.case + p99 + of, bound.against, *marks, *shown, verdict])
    return markdown(rows)


def figures_table(rounds: Rounds, case: Case, not_run: Mapping[str, str]) -> str:
    rows = [[case.name, *COLUMNS]]
    for server in case.servers:
        if loads := rounds.get((case.name, server)):
            shown = (spread([getattr(load, name) for load in loads]) for name in COLUMNS.values())
            rows.append([server, *shown])
        elif server in not_run:
            rows.append([server, f"not run: {not_run[server]}", *[""] * (len(COLUMNS) - 1)])
    return markdown(rows)


def whole(rounds: Rounds, not_run: Mapping[str, str], judged: Iterable[Judged]) -> str:
    measured = {case for case, _ in rounds}
    tables = [figures_table(rounds, case, not_run) for case in CASES if case.name in measured]
    return "\n".join([bounds_table(judged), *tables, shares(rounds)])


def latency(loads: Mapping[tuple[str, str], Load]) -> str:
    rows = [["one client", "p50 ms", "p99 ms"]]
    for (case, name), load in loads.items():
        rows.append([f"{case}, {name}", f"{load.p50_ms:.2f}", f"{load.p99_ms:.2f}"])
    return aligned(rows)


def shares(rounds: Rounds) -> str:
    """Who had how much of a core: what the figures are worth."""
    every = [load for loads in rounds.values() for load in loads]
    servers, client = [load.server_busy for load in every], max(load.client_busy for load in every)
    limit = "it may have been the limit" if client > CLIENT_LIMIT else "it was never the limit"
    return (
        f"Servers had {min(servers):.0%} to {max(servers):.0%} of their core, less where others used it.\n"
        f"wrk used at most {client:.0%} of its own: {limit}.\n"
    )
