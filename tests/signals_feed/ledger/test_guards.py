"""The triggers are there after every migration, and what they refuse stays refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from signals_feed.ledger.guards import missing_triggers, put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.models import Evidence, Signal
from tests.factories import make_signal
from tests.signals_feed.published_signals import ASK, BID, close_at, make_published

pytestmark = [pytest.mark.django_db, pytest.mark.services]


def refused(match: str) -> Any:
    return pytest.raises(IntegrityError, match=match)


def test_all_triggers_are_there_after_all_migrations() -> None:
    assert missing_triggers() == set()
    assert run_checks(databases=["default"]) == []


def test_closed_signal_is_not_published() -> None:
    signal = make_signal(status="closed")
    fields = {field.attname: getattr(signal, field.attname) for field in Signal._meta.concrete_fields}
    del fields["id"]

    with refused("published active"), transaction.atomic():
        Signal.objects.create(**fields)


@pytest.mark.parametrize("status", ["active", "closed"])
def test_published_signal_is_not_deleted(status: str) -> None:
    signal = make_signal(status=status)

    with refused("stays"), transaction.atomic():
        signal.delete()


@pytest.mark.parametrize("change", [{"expires_at": "2030-01-01T00:00Z"}, {"token": "0" * 32}])
def test_nobody_puts_off_the_end_of_a_signal(change: dict[str, str]) -> None:
    make_signal()

    with refused("keeps its terms"), transaction.atomic():
        Signal.objects.update(**change)


def test_cancellation_is_not_taken_back() -> None:
    make_signal()
    Signal.objects.update(cancel_reason="wrong symbol")

    with refused("keeps its terms"), transaction.atomic():
        Signal.objects.update(cancel_reason="")


@pytest.mark.parametrize("model", [Evidence, LedgerEntry, LedgerHead])
def test_what_was_written_down_is_not_deleted(model: type[models.Model]) -> None:
    make_published()

    with refused("stays"), transaction.atomic():
        model._default_manager.all()._raw_delete("default")


def test_evidence_does_not_change() -> None:
    make_published()

    with refused("does not change"), transaction.atomic():
        Evidence.objects.update(bid=Decimal(1))


def test_ledger_does_not_change() -> None:
    make_published()

    with refused("does not change"), transaction.atomic():
        LedgerEntry.objects.update(payload="{}")


def test_ledger_takes_no_entry_that_does_not_follow() -> None:
    signal = make_published()

    with refused("follows the last"), transaction.atomic():
        LedgerEntry.objects.create(
            position=2, kind="close", signal=signal.pk, payload="{}", previous="f" * 64, hash="0" * 64
        )


def test_head_does_not_go_back() -> None:
    close_at(make_published(), BID, ASK)

    with refused("later entry"), transaction.atomic():
        LedgerHead.objects.update(position=1)


@pytest.mark.parametrize("model", [Signal, Evidence, LedgerEntry, LedgerHead])
def test_what_was_written_down_is_not_replaced(model: type[models.Model]) -> None:
    """SQLite's REPLACE takes a row away past the triggers that refuse to delete or change it."""
    make_published()
    act = "INSERT" if connection.vendor == "postgresql" else "REPLACE"
    table = model._meta.db_table

    with refused("once|one head|unique constraint"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{act} INTO {table} SELECT * FROM {table}")  # noqa: S608 - names of our own


def test_trigger_that_refuses_nothing_is_as_good_as_missing() -> None:
    name, table = "signal_is_frozen", "signals_feed_signal"
    idle = {
        "sqlite": (
            f"DROP TRIGGER {name}",
            f"CREATE TRIGGER {name} BEFORE UPDATE ON {table} BEGIN SELECT 1; END",
        ),
        "postgresql": (f"ALTER TABLE {table} ENABLE REPLICA TRIGGER {name}",),
    }
    with connection.cursor() as cursor:
        for statement in idle[connection.vendor]:
            cursor.execute(statement)
    assert missing_triggers() == {name}

    put_up_triggers()

    assert missing_triggers() == set()


def test_migrate_puts_up_again_what_a_remade_table_lost() -> None:
    """SQLite drops a table's triggers with the table."""
    take_down_triggers()
    [warning] = run_checks(databases=["default"])
    assert (warning.id, "signal_is_frozen" in warning.msg) == ("signals_feed.W001", True)

    call_command("migrate", verbosity=0)

    assert missing_triggers() == set()
