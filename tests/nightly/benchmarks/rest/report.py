"""The tables, as docs/performance.md holds them, and the verdicts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from tests.nightly.benchmarks.streams.report import markdown, spread
from tests.nightly.benchmarks.tables import aligned

from .cases import BOUNDS, CASES, Bound, Case, Figure
from .load import Load
from .names import OURS

Rounds = Mapping[tuple[str, str], Sequence[Load]]
"""By case and server, one load a round."""
CLIENT_LIMIT = 0.9


class Verdict(StrEnum):
    REACHED = "reached"
    MISSED = "**goal missed**"
    BELOW = "**floor missed**"
    NOT_RUN = "not run"


class Judged(NamedTuple):
    bound: Bound
    ratios: list[float]
    verdict: Verdict
    by_wall_clock: list[float]
    """The same for what clients saw, which says more about other work on the machine."""


def judge(rounds: Rounds, bounds: Iterable[Bound] = BOUNDS) -> list[Judged]:
    judged = []
    for bound in bounds:
        values = ratios(rounds, bound, bound.figure)
        seen = ratios(rounds, bound, "per_second") if bound.is_least else []
        judged.append(Judged(bound, values, verdict_of(bound, values), seen))
    return judged


def ratios(rounds: Rounds, bound: Bound, figure: str) -> list[float]:
    """One a round: servers that ran one after the other are compared, and no others."""
    ours, peers = (rounds.get((bound.case, server), ()) for server in (bound.of, bound.against))
    pairs = zip(ours, peers, strict=bool(ours and peers))
    return [getattr(one, figure) / getattr(other, figure) for one, other in pairs]


def verdict_of(bound: Bound, values: Sequence[float]) -> Verdict:
    if not values:
        return Verdict.NOT_RUN
    # As the table shows it.
    middle = round(median(values), 2)
    if is_within(middle, bound.goal, bound):
        return Verdict.REACHED
    return Verdict.MISSED if is_within(middle, bound.floor, bound) else Verdict.BELOW


def is_within(value: float, mark: float, bound: Bound) -> bool:
    return value >= mark if bound.is_least else value <= mark


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


COLUMNS: tuple[tuple[str, Figure | str], ...] = (
    ("requests/s of processor time", "per_cpu_second"),
    ("requests/s", "per_second"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
)


def figures_table(rounds: Rounds, case: Case, not_run: Mapping[str, str]) -> str:
    rows = [[case.name, *(title for title, _ in COLUMNS)]]
    for server in case.servers:
        if loads := rounds.get((case.name, server)):
            rows.append([server, *(spread([getattr(load, name) for load in loads]) for _, name in COLUMNS)])
        elif server in not_run:
            rows.append([server, f"not run: {not_run[server]}", *[""] * (len(COLUMNS) - 1)])
    return markdown(rows)


def whole(rounds: Rounds, not_run: Mapping[str, str], judged: Iterable[Judged]) -> str:
    measured = {case for case, _ in rounds}
    tables = [figures_table(rounds, case, not_run) for case in CASES if case.name in measured]
    return "\n".join([bounds_table(judged), *tables, shares(rounds)])


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
    limit = "it may have been the limit" if client > CLIENT_LIMIT else "it was never the limit"
    return (
        f"Servers had {min(servers):.0%} to {max(servers):.0%} of their core, less where others used it.\n"
        f"wrk used at most {client:.0%} of its own: {limit}.\n"
    )


def failures(judged: Iterable[Judged]) -> Iterator[str]:
    """A sentence for each bound that does not hold; one that was not measured fails nothing."""
    for bound, values, verdict, _ in judged:
        if verdict is Verdict.BELOW:
            what = f"{bound.case}, {bound.figure}: {bound.of} is {median(values):.2f} × {bound.against}"
            yield f"{what}, and the floor is {bound.floor:g}.\n"
