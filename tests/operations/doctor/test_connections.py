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


@pytest.fixture
def _redis(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"


@pytest.mark.usefixtures("_redis")
def test_the_default_of_postgresql_is_enough_for_two_workers_and_no_more() -> None:
    assert judge_connections(2, POOL, most=100, reserved=3).level == OK
    found = judge_connections(3, POOL, most=100, reserved=3)
    assert (found.level, found.says) == (
        WARN,
        "All processes may hold 100 connections, and the server allows 97: (3 web processes that run now + 2 "
        "engines) × 18 + 10 for commands, if other machines have this one's DATABASE_POOL of 18.",
    )
    assert found.fix.startswith("Raise max_connections of PostgreSQL to at least 103, lower DATABASE_POOL,")


@pytest.mark.usefixtures("_redis")
def test_the_number_that_it_asks_for_is_enough_and_the_least_that_is() -> None:
    assert judge_connections(3, POOL, most=103, reserved=3).level == OK
    assert judge_connections(3, POOL, most=102, reserved=3).level == WARN


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
