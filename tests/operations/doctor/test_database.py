"""What the doctor says of the database, of the connections that all processes may hold, and of prices and
keys."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django.fixtures import Settings

from config.environment.variables import VARIABLES
from market.models import EngineState, LastQuote
from market.push.keys import issue_ingest_key, revoke_ingest_key
from market.store.lease import own_name
from operations.doctor.checks import check_prices
from operations.doctor.database import (
    ENGINES,
    FOR_COMMANDS,
    check_database,
    connections_needed,
    judge_connections,
)
from operations.doctor.diagnosis import FAIL, OK, WARN
from operations.void_keys import check_void_keys
from serving.findings import STOPPED
from status.models import ProcessReport
from tests.factories import make_account, make_calendar, make_instrument, make_key

from .diagnoses import faults, only_fault

pytestmark = pytest.mark.django_db


def test_one_in_order_has_no_fault_and_it_says_which_one_answers() -> None:
    assert faults(check_database()) == []
    assert str(connection.settings_dict["NAME"]) in next(iter(check_database())).says


@pytest.mark.parametrize(("production", "level"), [(False, "warn"), (True, "fail")])
def test_a_missing_migration_is_told(production: bool, level: str, settings: Settings) -> None:
    settings.PRODUCTION = production
    MigrationRecorder(connection).record_unapplied("status", last_of("status"))
    found, says = only_fault(check_database())
    assert found == level
    assert says == f"Of the migrations, 1 is pending; the first is status.{last_of('status')}."


def test_a_database_of_a_later_version_is_told() -> None:
    MigrationRecorder(connection).record_applied("accounts", "9999_later")
    assert only_fault(check_database()) == (
        "warn",
        "The database was migrated by a later version, for example by accounts.9999_later.",
    )


def last_of(app: str) -> str:
    return max(name for found, name in MigrationLoader(None).disk_migrations if found == app)


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
def test_processes_that_have_ended_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("status.models.REPORTS_EXPECTED", timedelta(hours=15))
    for process, hours_ago in (("a", 0), ("b", 6), ("c", 30)):
        at = timezone.now() - timedelta(hours=hours_ago)
        ProcessReport.objects.create(process=process, at=at)
    ProcessReport.objects.put("d", {STOPPED: 0.0})
    assert ProcessReport.objects.running() == 2


def test_page_reckons_as_the_doctor_does() -> None:
    assert f"`DATABASE_POOL` ({POOL}: `API_THREADS` + `PAGE_THREADS` + 4)" in SIZING
    assert f"{POOL} × (W + {ENGINES}) + {FOR_COMMANDS} together" in SIZING
    assert f"enough for two workers ({connections_needed(2, ENGINES, POOL)})" in SIZING


@pytest.fixture
def _engine() -> None:
    EngineState.objects.create(pk=1, writer=own_name(), beat_at=timezone.now())


def quote(symbol: str, seconds_ago: float = 0, **fields: object) -> None:
    quoted_at = timezone.now() - timedelta(seconds=seconds_ago)
    instrument = make_instrument(symbol, **fields)
    LastQuote.objects.create(instrument=instrument, bid=1, ask=2, quoted_at=quoted_at)


@pytest.mark.usefixtures("_engine")
def test_fresh_prices_of_an_engine_are_in_order() -> None:
    quote("EURUSD", source="kraken")
    another_day = (timezone.now() + timedelta(days=3)).strftime("%a")
    closed = make_calendar("closed", f"{another_day} 10:00-11:00")
    make_instrument("XAUUSD", source="kraken", calendar=closed)
    assert faults(check_prices()) == []


def test_a_service_without_instruments_is_told() -> None:
    assert only_fault(check_prices()) == ("warn", "There are no instruments, so there is nothing to price.")


def test_no_engine_is_told(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    quote("EURUSD", source="kraken")
    (found,) = check_prices()
    assert (found.level, found.says) == ("warn", "No engine is running, so no prices are made.")
    assert "run_engine" in found.fix


@pytest.mark.parametrize("seconds_ago", [16, 86_400])
def test_an_engine_that_has_stopped_writing_is_none(seconds_ago: float) -> None:
    quote("EURUSD", source="kraken")
    beat_at = timezone.now() - timedelta(seconds=seconds_ago)
    EngineState.objects.create(pk=1, writer="elsewhere:1:x.y", beat_at=beat_at)
    assert "No engine" in only_fault(check_prices())[1]


@pytest.mark.usefixtures("_engine")
def test_open_markets_without_fresh_prices_are_named() -> None:
    make_instrument("BTCUSD", source="kraken")
    quote("EURUSD", source="kraken")
    quote("XAUUSD", 120, source="kraken")
    quote("XAGUSD", 120, source="kraken", stale_after_s=600)
    assert only_fault(check_prices()) == (
        "warn",
        "No fresh prices of BTCUSD, XAUUSD, though the market is open.",
    )


@pytest.mark.usefixtures("_engine")
def test_instruments_that_nobody_may_push_are_told(settings: Settings) -> None:
    settings.DEMO = False
    quote("EURUSD")
    quote("XAUUSD", source="push:desk")
    quote("BTCUSD", source="kraken")
    says = "Of 3 instruments, 2 wait for pushed prices, and there is no ingest key."
    assert only_fault(check_prices()) == ("warn", says)

    issue_ingest_key("desk", by="test", account=make_account())
    assert faults(check_prices()) == []

    # Whoever holds it may publish on what it sends, and nobody can tell.
    key, _ = issue_ingest_key("bridge", by="test")
    assert only_fault(check_prices()) == ("warn", "Ingest keys without an owner: 1 (bridge).")

    revoke_ingest_key(key, by="test")
    assert faults(check_prices()) == []


def test_keys_of_a_pepper_that_is_not_set_are_told(settings: Any) -> None:
    settings.KEY_PEPPER = "the first"
    account = make_account()
    make_key(account)
    # One that does not name its pepper is not judged.
    make_key(account, pepper_name="")
    issue_ingest_key("desk", by="test")
    assert faults(check_void_keys()) == []

    settings.KEY_PEPPER = "the second"
    level, says = only_fault(check_void_keys())
    assert level == "warn"
    assert says.startswith("1 API keys, 1 ingest keys open nothing, because")

    settings.KEY_PEPPER_FALLBACKS = ["the first"]
    assert faults(check_void_keys()) == []
