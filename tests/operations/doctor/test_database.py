from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django.fixtures import Settings

from operations.doctor.database import check_database

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
