"""The new rules begin once each process that runs knows them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from core.version import known_rules
from market.models import EngineState
from market.store.lease import own_name
from signals_feed.ledger.new_rules import begin_when_known, have_begun
from status.models import ProcessReport

pytestmark = [pytest.mark.django_db, pytest.mark.services]
NAME_OF_BEFORE = own_name().rpartition(".")[0]


@pytest.fixture(autouse=True)
def _as_the_service_begins(all_processes_are_asked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # A machine that stands still ends no process.
    monkeypatch.setattr("status.models.REPORTS_EXPECTED", timedelta(hours=1))


def written_by(writer: str) -> None:
    EngineState.objects.update_or_create(pk=1, defaults={"writer": writer})


def report(*rules: int) -> None:
    for number, each in enumerate(rules):
        ProcessReport.objects.create(process=str(number), at=timezone.now(), rules=each)


@pytest.mark.parametrize(
    ("web", "writer", "have"),
    [
        ((), "", False),
        ((2, 2), f"{NAME_OF_BEFORE}.2", True),
        ((), f"{NAME_OF_BEFORE}.2", True),
        ((2, 2), "", False),
        ((2, 1), f"{NAME_OF_BEFORE}.2", False),
        ((2, 2), NAME_OF_BEFORE, False),
        ((2, 2), own_name(), True),
    ],
    # Names of writers hold the number of the process.
    ids=range(7),
)
def test_they_begin_when_all_that_run_know_them(web: tuple[int, ...], writer: str, have: bool) -> None:
    report(*web)
    written_by(writer)
    assert (begin_when_known(), have_begun()) == (have, have)


def test_those_that_have_ended_are_not_waited_for_and_those_that_start_later_end_nothing() -> None:
    written_by(f"{NAME_OF_BEFORE}.2")
    report(1)
    ProcessReport.objects.update(at=F("at") - timedelta(hours=2))
    ProcessReport.objects.create(process="new", at=timezone.now(), rules=2)
    assert begin_when_known()
    ProcessReport.objects.update(rules=1, at=timezone.now())
    assert begin_when_known()


def test_a_process_reports_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_rules, "newest", 3)
    ProcessReport.objects.put("here", {})
    assert ProcessReport.objects.oldest_rules() == 3
