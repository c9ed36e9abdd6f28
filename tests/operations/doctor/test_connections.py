"""The connections that all processes may hold, against those that PostgreSQL allows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from config.environment.variables import VARIABLES
from operations.doctor.database import ENGINES, FOR_COMMANDS, connections_needed, judge_connections
from operations.doctor.diagnosis import FAIL, OK, WARN
from status.models import ProcessReport

SIZING = (Path(__file__).parents[3] / "docs/operate/sizing.md").read_text()
POOL = VARIABLES["API_THREADS"].default + VARIABLES["PAGE_THREADS"].default + 4


@pytest.mark.parametrize(
    ("web", "most", "level"), [(2, 100, OK), (3, 100, WARN), (3, 102, WARN), (3, 103, OK)]
)
def test_connections_have_to_be_enough_for_all_processes(
    web: int, most: int, level: str, settings: Settings
) -> None:
    """The default of PostgreSQL is for two workers and no more."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    found = judge_connections(web, POOL, most=most, reserved=3)
    assert found.level == level
    if level == WARN:
        assert found.says.startswith(
            f"All processes may hold 100 connections, and the server allows {most - 3}:"
        )
        assert "(3 web processes that run now + 2 engines) × 18 + 10 for commands" in found.says
        assert "Raise max_connections of PostgreSQL to at least 103, lower DATABASE_POOL," in found.fix


@pytest.mark.parametrize("web", [0, 1])
def test_without_redis_one_process_does_everything(web: int, settings: Settings) -> None:
    settings.REDIS_URL = ""
    assert "(1 web process) × 18 + 10" in judge_connections(web, POOL, most=28, reserved=0).says
    assert judge_connections(web, POOL, most=28, reserved=0).level == OK
    assert judge_connections(web, POOL, most=27, reserved=0).level == WARN


def test_pool_of_one_process_that_does_not_fit_is_a_fault() -> None:
    assert judge_connections(1, 98, most=100, reserved=3).level == FAIL


@pytest.mark.django_db
def test_processes_that_have_ended_do_not_count() -> None:
    for process, seconds_ago in (("a", 0), ("b", 6), ("c", 30)):
        at = timezone.now() - timedelta(seconds=seconds_ago)
        ProcessReport.objects.create(process=process, at=at)
    assert ProcessReport.objects.running() == 2


def test_page_reckons_as_the_doctor_does() -> None:
    assert f"`DATABASE_POOL` ({POOL}: `API_THREADS` + `PAGE_THREADS` + 4)" in SIZING
    assert f"{POOL} × (W + {ENGINES}) + {FOR_COMMANDS} together" in SIZING
    assert f"enough for two workers ({connections_needed(2, ENGINES, POOL)})" in SIZING
