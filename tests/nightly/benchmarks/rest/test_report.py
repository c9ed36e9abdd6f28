"""What the tables and verdicts say of a run."""

from __future__ import annotations

import pytest

from . import report
from .cases import BOUNDS, CASES, QUOTE, RECORDED, Bound
from .load import Load
from .names import NODE, OURS, RAW, SHARED

BOUND = Bound("quote", NODE, 1.0, 1.5)
LATENCY = Bound("quote", NODE, 1.0, 0.5, figure="p99_ms")


def make_load(per_cpu_second: float = 60_000, p99_ms: float = 1.0) -> Load:
    return Load(
        per_second=per_cpu_second,
        p50_ms=0.2,
        p99_ms=p99_ms,
        per_cpu_second=per_cpu_second,
        server_busy=1.0,
        client_busy=0.5,
    )


def make_rounds(ours: list[Load], node: list[Load]) -> report.Rounds:
    return {("quote", OURS): ours, ("quote", NODE): node}


@pytest.mark.parametrize(
    ("speed", "verdict"),
    [
        (45_000, report.Verdict.REACHED),
        (44_000, report.Verdict.MISSED),
        (30_000, report.Verdict.MISSED),
        (29_000, report.Verdict.BELOW),
    ],
)
def test_a_speed_is_judged_by_floor_and_goal(speed: float, verdict: report.Verdict) -> None:
    rounds = make_rounds([make_load(speed)], [make_load(30_000)])

    assert [judged.verdict for judged in report.judge(rounds, [BOUND])] == [verdict]


@pytest.mark.parametrize(
    ("p99_ms", "verdict"),
    [(1.0, report.Verdict.REACHED), (1.1, report.Verdict.MISSED), (2.1, report.Verdict.BELOW)],
)
def test_a_latency_is_judged_from_above(p99_ms: float, verdict: report.Verdict) -> None:
    rounds = make_rounds([make_load(p99_ms=p99_ms)], [make_load(p99_ms=2.0)])

    assert [judged.verdict for judged in report.judge(rounds, [LATENCY])] == [verdict]


def test_a_figure_below_the_floor_is_a_failure_and_named() -> None:
    rounds = make_rounds([make_load(20_000)], [make_load(40_000)])

    told = list(report.failures(report.judge(rounds)))

    assert told == ["quote, per_cpu_second: ours is 0.50 × Node, and the floor is 1.\n"]


def test_a_missed_goal_above_the_floor_is_shown_and_no_failure() -> None:
    judged = report.judge(make_rounds([make_load(48_000)], [make_load(40_000)]), [BOUND])

    assert not list(report.failures(judged))
    assert "| quote | Node | ≥ 1 | ≥ 1.5 | 1.20 | 1.20 | **goal missed** |" in report.bounds_table(judged)


def test_only_servers_of_one_round_are_compared() -> None:
    rounds = make_rounds(
        [make_load(speed) for speed in (10_000, 20_000, 90_000)],
        [make_load(speed) for speed in (10_000, 10_000, 30_000)],
    )

    (judged,) = report.judge(rounds, [BOUND])

    assert judged.ratios == [1.0, 2.0, 3.0]
    assert "2.00 (1.00–3.00)" in report.bounds_table([judged])


def test_a_peer_that_was_not_run_is_named_and_fails_nothing() -> None:
    rounds = {("quote", OURS): [make_load()]}

    judged = report.judge(rounds)
    told = report.whole(rounds, {NODE: "there is no node"}, judged)

    assert {each.verdict for each in judged} == {report.Verdict.NOT_RUN}
    assert not list(report.failures(judged))
    assert "| Node | not run: there is no node |" in told


def test_every_bound_is_of_a_case_in_which_both_take_part() -> None:
    servers = {case.name: case.servers for case in CASES}

    assert all({bound.of, bound.against} <= set(servers[bound.case]) for bound in BOUNDS)
    assert all(bound.is_least == (bound.goal >= bound.floor) for bound in BOUNDS)


def test_raw_peers_are_asked_only_for_what_was_recorded() -> None:
    assert [case for case in CASES if set(RAW) & set(case.servers)] == list(RECORDED)
    assert SHARED in QUOTE.servers
