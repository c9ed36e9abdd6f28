"""When a process is ready: a table of what it found and what others found."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from serving.findings import ALONE_AFTER_S, HEARD_WITHIN_S, OK, STOPPED, Findings
from serving.readiness import DatabaseProbe, ReadinessMonitor
from status.models import ProcessReport

BEGAN = 100.0
LATER = BEGAN + ALONE_AFTER_S + 2


def make_picture() -> Findings:
    picture = Findings()
    for name in ("database", "redis"):
        picture.note(name, OK, BEGAN - 1)
    picture.note("redis", "away", BEGAN)
    return picture


def test_what_is_in_order_is_ready() -> None:
    picture = Findings()
    picture.note("database", OK, 1.0)
    assert picture.verdict((), 2.0) == ([], [], {"database": OK})
    picture = make_picture()
    picture.hear({"redis": 0.5}, LATER)
    picture.note("redis", OK, LATER)
    assert picture.verdict((), LATER) == ([], [], {"database": OK, "redis": OK})


def test_what_is_away_for_all_only_degrades_and_others_do_not_hear_of_it() -> None:
    picture = make_picture()
    assert picture.verdict((), LATER) == ([], ["redis"], {"database": OK, "redis": "away"})
    assert picture.ages_s(BEGAN + 1) == {"database": 2.0}
    # Own faults stand before all others.
    assert picture.verdict(["stopping"], LATER).reasons == ["stopping"]


@pytest.mark.parametrize(
    ("age_s", "heard_at", "at", "is_unready"),
    [
        # Another process has it.
        (0.5, LATER, LATER, True),
        # It had it before it was lost here.
        (LATER - BEGAN + 0.5, LATER, LATER, False),
        # A hiccup is no reason to go.
        (0.0, BEGAN + ALONE_AFTER_S - 0.1, BEGAN + ALONE_AFTER_S - 0.1, False),
        # Who fell silent proves nothing any more.
        (0.0, LATER, LATER + HEARD_WITHIN_S - 0.1, True),
        (0.0, LATER, LATER + HEARD_WITHIN_S, False),
    ],
)
@pytest.mark.parametrize("is_noted_again", [False, True])
def test_what_another_process_has_makes_this_one_unready(
    age_s: float, heard_at: float, at: float, is_unready: bool, is_noted_again: bool
) -> None:
    picture = make_picture()
    if is_noted_again:
        # A fault lasts from its first sight.
        picture.note("redis", "full", at)
    picture.hear({"redis": age_s}, heard_at)
    assert picture.verdict((), at).reasons == ["redis"] * is_unready


class KeptReports:
    def __init__(self) -> None:
        self.put_by: list[tuple[str, dict[str, float]]] = []

    def of_others(self, process: str) -> list[dict[str, float]]:
        return []

    def put(self, process: str, ages_s: dict[str, float]) -> None:
        self.put_by.append((process, ages_s))

    def prune(self) -> None:
        """There is nothing older."""


async def test_last_report_of_a_process_says_that_it_has_stopped(settings: Settings) -> None:
    settings.REDIS_URL = ""
    monitor, reports = ReadinessMonitor(), KeptReports()
    await monitor.start(lambda: (), reports)
    await monitor.stop()
    assert reports.put_by[-1] == (monitor.process, {STOPPED: 0.0})


@pytest.mark.services
@pytest.mark.django_db
def test_processes_tell_each_other_over_the_database_what_they_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The test's own connection, which a thread of its own does not have.
    monkeypatch.setattr("serving.readiness.close_old_connections", lambda: None)
    first, second = (DatabaseProbe(ProcessReport.objects, name, {name: 5.0}) for name in ("one", "two"))
    first.run()
    second.run()
    assert (first.others, [[*each] for each in second.others]) == ([], [["one"]])
    assert (second.reading, second.writing) == (OK, OK)
    first.run()
    assert [[*each] for each in first.others] == [["two"]]
