"""What the database itself refuses: impossible signals, and changes of what was published."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Value
from django.db.models.functions import Replace

from signals_feed.ledger.guards import (
    KEPT_WHOLE,
    LOG_TABLES,
    missing_triggers,
    put_up_triggers,
    take_down_triggers,
)
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead, signer
from signals_feed.ledger.trigger_rules import ENTRY
from signals_feed.ledger.verify import verify
from signals_feed.models import Evidence, Signal
from tests.factories import NOON, RESULT, make_instrument, make_signal, make_user
from tests.signals_feed.published_signals import ASK, BID, close_at, make_published
from transparency.keyring import keyring
from transparency.models import Cosignature, LogKey, SignedCheckpoint

pytestmark = [pytest.mark.django_db, pytest.mark.services]
CLOSED: dict[str, Any] = {
    "status": "closed",
    "close_price": Decimal("1.09"),
    "closed_at": NOON,
    "close_reason": "take_profit",
    "pnl": Decimal(58),
    "pnl_percent": Decimal("0.5"),
    "pnl_r": Decimal("1.8"),
}
SELL = {"direction": "sell", "stop_loss": Decimal("1.09"), "take_profit": Decimal("1.08")}
ACTIVE = dict.fromkeys(CLOSED) | {"status": "active", "close_reason": ""}
ONE_RESULT, SIDES = "signal_closed_iff_result", "signal_levels_are_on_their_sides"
POSITIVE, KEEPS_TERMS = "signal_prices_are_positive", "keeps its terms"


def refused(match: str) -> Any:
    return pytest.raises(IntegrityError, match=match)


def create(**fields: Any) -> Signal:
    """As it is written, without the factory's reckoning of a result."""
    terms = {"direction": "buy", "entry": "1.0842", "stop_loss": "1.0810", "take_profit": "1.0900"}
    given = {"tradable_price": "1.0842", "published_at": NOON, **terms, **fields}
    begun = {name: value for name, value in given.items() if name not in RESULT}
    signal = Signal.objects.create(instrument=make_instrument(), user=make_user(), **begun)
    # What is closed was active before.
    if ended := {name: value for name, value in given.items() if name in RESULT}:
        Signal.objects.filter(pk=signal.pk).update(**ended)
        signal.refresh_from_db()
    return signal


def test_whole_closed_signal_is_taken() -> None:
    assert create(**CLOSED).status == "closed"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(
            (ONE_RESULT, CLOSED | {field: None})
            for field in CLOSED
            if field not in ("status", "close_reason")
        ),
        *((ONE_RESULT, {field: CLOSED[field]}) for field in CLOSED if field != "status"),
        *((ONE_RESULT, CLOSED | {"close_reason": reason}) for reason in ("", "whim")),
        *((ONE_RESULT, CLOSED | {"close_price": Decimal(price)}) for price in (0, -1)),
        (ONE_RESULT, CLOSED | {"closed_at": NOON - timedelta(seconds=1)}),
        *((ONE_RESULT, {"status": status}) for status in ("", "open", "CLOSED")),
        *((SIDES, {"stop_loss": price}) for price in ("1.0842", "1.0850")),
        *((SIDES, {"take_profit": price}) for price in ("1.0842", "1.0800")),
        *((SIDES, {"direction": direction}) for direction in ("sell", "", "BUY")),
        *((SIDES, SELL | {"stop_loss": price}) for price in ("1.0842", "1.0800")),
        *((SIDES, SELL | {"take_profit": price}) for price in ("1.0842", "1.0900")),
        *((POSITIVE, {"stop_loss": price}) for price in ("0", "-1")),
        (POSITIVE, {"tradable_price": "0"}),
        (POSITIVE, SELL | {"take_profit": "0"}),
        ("signal_cancelled_has_reason", CLOSED | {"close_reason": "cancelled"}),
    ],
)
def test_impossible_signal_is_refused(name: str, bad: dict[str, Any]) -> None:
    with refused(name), transaction.atomic():
        create(**bad)


@pytest.mark.parametrize(
    ("status", "match", "change"),
    [
        ("active", KEEPS_TERMS, SELL),
        ("active", KEEPS_TERMS, {"entry": "1.0843"}),
        ("active", KEEPS_TERMS, {"stop_loss": "1.0811"}),
        ("active", KEEPS_TERMS, {"take_profit": "1.0901"}),
        ("active", KEEPS_TERMS, {"tradable_price": "1.0843"}),
        ("active", KEEPS_TERMS, {"published_at": NOON + timedelta(milliseconds=1)}),
        ("active", KEEPS_TERMS, {"expires_at": "2030-01-01T00:00Z"}),
        ("active", KEEPS_TERMS, {"token": "0" * 32}),
        ("active", KEEPS_TERMS, {"instrument": lambda: make_instrument("GBPUSD")}),
        ("active", KEEPS_TERMS, {"user": make_user}),
        ("active", KEEPS_TERMS, {"cancel_reason": ""}),
        ("closed", "does not change", ACTIVE),
        ("closed", "does not change", {"pnl": Decimal(999)}),
        ("closed", "does not change", {"close_reason": "manual"}),
    ],
)
def test_what_was_published_does_not_change(status: str, match: str, change: dict[str, Any]) -> None:
    make_signal(status=status)
    if "cancel_reason" in change:
        Signal.objects.update(cancel_reason="wrong symbol")
    made = {name: value() if callable(value) else value for name, value in change.items()}
    with refused(match), transaction.atomic():
        Signal.objects.update(**made)


def test_active_signal_can_be_saved_again_unchanged() -> None:
    signal = Signal.objects.get(pk=make_signal().pk)
    signal.cancel_reason = "typing error"
    signal.save()
    assert Signal.objects.get().cancel_reason == "typing error"


def test_closed_signal_is_not_published() -> None:
    signal = make_signal(status="closed")
    fields = {field.attname: getattr(signal, field.attname) for field in Signal._meta.concrete_fields}
    del fields["id"]
    with refused("published active"), transaction.atomic():
        Signal.objects.create(**fields)


@pytest.mark.parametrize("status", ["active", "closed"])
def test_published_signal_is_not_deleted(status: str) -> None:
    with refused("stays"), transaction.atomic():
        make_signal(status=status).delete()


@pytest.mark.parametrize("model", [Evidence, LedgerEntry, LedgerHead])
def test_what_was_written_down_is_not_deleted(model: type[models.Model]) -> None:
    make_published()
    with refused("stays"), transaction.atomic():
        model._default_manager.all()._raw_delete("default")


@pytest.mark.parametrize(
    ("model", "match", "change"),
    [
        (Evidence, "does not change", {"bid": Decimal(1)}),
        (LedgerEntry, "does not change", {"payload": "{}"}),
        (LedgerHead, "later entry", {"position": 1}),
    ],
)
def test_what_was_written_down_does_not_change(
    model: type[models.Model], match: str, change: dict[str, Any]
) -> None:
    close_at(make_published(), BID, ASK)
    with refused(match), transaction.atomic():
        model._default_manager.update(**change)


def test_ledger_takes_no_entry_that_does_not_follow() -> None:
    signal = make_published()
    with refused("follows the last"), transaction.atomic():
        LedgerEntry.objects.create(
            position=2, kind="close", signal=signal.pk, payload="{}", previous="f" * 64, hash="0" * 64
        )


def make_cosigned() -> SignedCheckpoint:
    signed = signer.sign(NOON)
    assert signed is not None
    Cosignature.objects.add(signed, "witness", NOON, "line\n", NOON)
    return signed


@pytest.mark.parametrize(
    "model", [Signal, Evidence, LedgerEntry, LedgerHead, LogKey, SignedCheckpoint, Cosignature]
)
def test_what_was_written_down_is_not_replaced(model: type[models.Model]) -> None:
    make_published()
    make_cosigned()
    act = "INSERT" if connection.vendor == "postgresql" else "REPLACE"
    table = model._meta.db_table
    with (
        refused("once|one head|follows the last|unique constraint"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"{act} INTO {table} SELECT * FROM {table}")  # noqa: S608 - names of our own


@pytest.mark.parametrize("table", [*KEPT_WHOLE, *LOG_TABLES])
def test_nothing_is_emptied(table: str) -> None:
    make_published()
    make_cosigned()
    empty = f"DELETE FROM {table}"  # noqa: S608 - names of our own
    if connection.vendor == "postgresql":
        empty = f"SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE {table} CASCADE"
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(empty)


@pytest.mark.parametrize(
    ("model", "change"),
    [
        *((LogKey, {name: "else"}) for name in ("origin", "verifier")),
        (LogKey, {"made_at": NOON - timedelta(days=1)}),
        (LogKey, {"signs_until": None}),
        (LogKey, {"signs_until": NOON + timedelta(days=31)}),
        (SignedCheckpoint, {"origin": "else"}),
        (SignedCheckpoint, {"size": 1}),
        (SignedCheckpoint, {"made_at": NOON - timedelta(days=1)}),
        (SignedCheckpoint, {"note": Replace("note", Value("\n0\n"), Value("\n1\n"))}),
        (Cosignature, {"witness": "else"}),
        (Cosignature, {"first_at": NOON - timedelta(days=1)}),
        (Cosignature, {"first_line": "else"}),
    ],
)
def test_what_was_signed_does_not_change(model: type[models.Model], change: dict[str, Any]) -> None:
    make_cosigned()
    keyring.rotate(NOON)
    with refused("does not change"), transaction.atomic():
        model._default_manager.filter(pk=model._default_manager.earliest("pk").pk).update(**change)


def test_checkpoint_of_fewer_entries_is_not_signed_later() -> None:
    made = make_cosigned()
    values = {"origin": made.origin, "note": made.note, "made_at": NOON, "signed_at": NOON}
    SignedCheckpoint.objects.create(size=2, **values)
    with refused("follows the last"), transaction.atomic():
        SignedCheckpoint.objects.create(size=1, **values)


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
    assert f"{name} missing" in verify().fault
    put_up_triggers()
    assert missing_triggers() == set()


def test_migrate_puts_up_again_what_a_remade_table_lost() -> None:
    assert run_checks(databases=["default"]) == []
    take_down_triggers()
    [warning] = run_checks(databases=["default"])
    assert (warning.id, "signal_is_frozen" in warning.msg) == ("signals_feed.W001", True)
    call_command("migrate", verbosity=0)
    assert missing_triggers() == set()


def test_a_table_of_the_session_does_not_stand_for_that_of_a_trigger() -> None:
    make_published()
    is_sqlite = connection.vendor == "sqlite"
    own, temporary = ("main", "temp") if is_sqlite else ("public", "pg_temp")
    with connection.cursor() as cursor:
        removed = f"SELECT signal, 'remove' AS kind FROM {own}.{ENTRY}"  # noqa: S608 - a name of our own
        cursor.execute(f"CREATE TEMP TABLE {ENTRY} AS {removed}")
        with refused("stays"), transaction.atomic():
            cursor.execute("DELETE FROM signals_feed_evidence")
        cursor.execute(f"DROP TABLE {temporary}.{ENTRY}")
        if not is_sqlite:
            cursor.execute("ALTER FUNCTION evidence_stays() RESET search_path")
    assert missing_triggers() == (set() if is_sqlite else {"evidence_stays"})
