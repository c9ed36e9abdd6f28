"""The tables, as docs/performance.md holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from tests.nightly.benchmarks.tables import Rounds, markdown, ratios, spread

from .cases import CASES, GOALS, OURS, Case, Figure, Goal
from .load import Load

NotRun = Mapping[str, str]
"""Why a server could not be run."""
CLIENT_LIMIT = 0.9
WORDS: dict[Figure, str] = {
    "messages_per_s": "messages/s",
    "p99_ms": "p99, ms",
    "connection_kb": "KB a connection",
}


def reached(rounds: Rounds, goal: Goal, figure: str) -> list[float]:
    if goal.against:
        return ratios(rounds, goal.case, figure, goal.of, goal.against)
    return [getattr(load, figure) for load in rounds.get((goal.case, goal.of), ())]


def is_held(goal: Goal, values: Sequence[float]) -> bool:
    middle = round(median(values), 2)
    return middle >= goal.bound if goal.is_floor else middle <= goal.bound


def goals_table(rounds: Rounds) -> str:
    rows = [["", "against", "goal", "measured", "by processor time", ""]]
    for goal in GOALS:
        if values := reached(rounds, goal, goal.figure):
            what = "" if goal.figure == "messages_per_s" else f", {WORDS[goal.figure]}"
            sign = "≥" if goal.is_floor else "≤"
            held = "reached" if is_held(goal, values) else "**missed**"
            against = goal.against if goal.of != goal.against and goal.against else "–"
            name = goal.case + what + (f": {goal.of}" if goal.of != OURS else "")
            by_cpu = "" if what else spread(reached(rounds, goal, "messages_per_cpu_s"))
            rows.append([name, against, f"{sign} {goal.bound:g}", spread(values), by_cpu, held])
    return markdown(rows)


def figures_table(rounds: Rounds, case: Case, not_run: NotRun) -> str:
    is_idle = "window" not in case.options and "rate" not in case.options
    rows = [[case.name, WORDS["connection_kb"]] if is_idle else [case.name, *HEADS]]
    for server in case.servers:
        if loads := rounds.get((case.name, server)):
            kb = spread([load.connection_kb for load in loads])
            rows.append([server, kb] if is_idle else [server, *cells(loads)])
        elif server in not_run:
            rows.append([server, f"not run: {not_run[server]}", *[""] * (len(rows[0]) - 2)])
    return markdown(rows) if any(name == case.name for name, _ in rounds) else ""


HEADS = ("messages/s", "CPU µs each", "p50 ms", "p99 ms", "lost", "note")


def cells(loads: Sequence[Load]) -> list[str]:
    costs = [1e6 / load.messages_per_cpu_s for load in loads if load.messages_per_cpu_s]
    return [
        spread([load.messages_per_s for load in loads]),
        spread(costs) if costs else "–",
        spread([load.p50_ms for load in loads]),
        spread([load.p99_ms for load in loads]),
        f"{sum(load.missing for load in loads):,}",
        ", ".join(notes(loads)),
    ]


def notes(loads: Sequence[Load]) -> Iterator[str]:
    if median(load.client_busy for load in loads) > CLIENT_LIMIT:
        yield "the client was at its limit"
    if disturbed := sum(load.is_disturbed for load in loads):
        yield f"{disturbed} of {len(loads)} disturbed"
    if ended := sum(load.ended for load in loads):
        yield f"{ended} connections ended"


def whole(rounds: Rounds, not_run: NotRun, machine: str) -> str:
    tables = [table for case in CASES if (table := figures_table(rounds, case, not_run))]
    return "\n".join([machine, "", goals_table(rounds), *tables])
