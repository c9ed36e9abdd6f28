"""What the tables say of a run."""

from __future__ import annotations

import msgspec

from tests.nightly.benchmarks.streams.cases import CASES, GOALS, Case, Goal
from tests.nightly.benchmarks.streams.load import Load
from tests.nightly.benchmarks.streams.names import LIMIT, NODE, OURS

from . import report
from .__main__ import in_rounds

CALM = Load(
    messages_per_s=200_000,
    messages_per_cpu_s=200_000,
    p50_ms=2,
    p99_ms=6,
    server_busy=1,
    client_busy=0.8,
    waited=0,
    missing=0,
    wrong=0,
    ended=0,
    connection_kb=24,
    beats=0,
)


def make_load(**fields: float) -> Load:
    return msgspec.structs.replace(CALM, **fields)


def make_rounds(case: str, ours: list[Load], peer: str, theirs: list[Load]) -> report.Rounds:
    return {(case, OURS): ours, (case, peer): theirs}


def test_only_servers_of_one_round_are_compared() -> None:
    ours = [make_load(messages_per_s=speed) for speed in (100, 200, 300)]
    theirs = [make_load(messages_per_s=speed) for speed in (50, 200, 600)]

    values = report.reached(
        make_rounds("w=1", ours, NODE, theirs), Goal("w=1", "messages_per_s", 1, NODE), "messages_per_s"
    )

    assert values == [2.0, 1.0, 0.5]
    assert report.spread(values) == "1.00 (0.50–2.00)"


def test_a_floor_holds_at_its_bound_and_a_ceiling_too() -> None:
    assert report.is_held(Goal("w=1", "messages_per_s", 0.65, LIMIT), [0.65])
    assert not report.is_held(Goal("w=1", "messages_per_s", 0.65, LIMIT), [0.64])
    assert report.is_held(Goal("w=1", "p99_ms", 6, is_floor=False), [6.0])
    assert not report.is_held(Goal("w=1", "p99_ms", 6, is_floor=False), [6.1])


def test_a_missed_goal_is_named() -> None:
    rounds = make_rounds("w=1", [make_load(messages_per_s=100)], LIMIT, [make_load(messages_per_s=200)])

    assert [goal.against for goal in report.missed(rounds)] == [LIMIT]
    assert "| w=1 | C, one send each | ≥ 0.65 | 0.50 | 1.00 | **missed** |" in report.goals_table(rounds)


def test_a_server_that_did_not_run_stands_in_the_table() -> None:
    rounds = {("w=1", OURS): [CALM]}

    told = report.whole(rounds, {NODE: "there is no node"}, "A machine.")

    assert "| Node `ws` | not run: there is no node |" in told


def test_the_table_says_where_the_client_was_the_limit_or_others_disturbed() -> None:
    rounds = {("w=1", OURS): [make_load(client_busy=0.95), make_load(client_busy=0.99, waited=0.1)]}

    told = report.whole(rounds, {}, "A machine.")

    assert "the client was at its limit, 1 of 2 disturbed" in told


def test_every_goal_is_of_a_case_that_is_measured() -> None:
    cases = {case.name: case.servers for case in CASES}

    assert all(goal.of in cases[goal.case] for goal in GOALS)
    assert all(goal.against in cases[goal.case] for goal in GOALS if goal.against)


def test_a_case_takes_as_many_rounds_as_it_wants() -> None:
    short, long = Case("short", {}, (OURS,)), Case("long", {}, (OURS,), rounds=4)

    assert [case.name for _, case in in_rounds([short, long], 4)] == ["short", "long"] * 3 + ["long"]
    assert [number for number, case in in_rounds([short, long], 4) if case is long] == [1, 2, 3, 4]
    assert len(list(in_rounds([short, long], 1))) == 2
