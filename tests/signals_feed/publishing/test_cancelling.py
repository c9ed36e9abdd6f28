"""Cancelling and closing: what changes, once, and with its event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction

from core.database import database
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from signals_feed.models import Signal
from signals_feed.publishing.actions import SignalNotActive, cancel
from tests.databases.queries import count_queries
from tests.factories import NOON, make_instrument, make_signal
from tests.patience import PATIENCE_S
from tests.signals_feed.published_signals import close_at, make_waiting

pytestmark = [pytest.mark.django_db, pytest.mark.services]

BID, ASK = Decimal("1.0850"), Decimal("1.0852")


def closed(signal: Signal, reason: str = "manual") -> bool:
    return close_at(signal, BID, ASK, reason, NOON)


def kinds() -> list[str]:
    return list(ControlEvent.objects.order_by("position").values_list("kind", flat=True))


@pytest.mark.parametrize("reason", ["", " ", "\n\t "])
def test_cancellation_needs_a_reason(reason: str) -> None:
    signal = make_signal()
    with pytest.raises(ValueError, match="reason"):
        cancel(signal, reason=reason, by="alice")


def test_cancelled_signal_is_marked_told_once_and_still_active() -> None:
    signal = make_signal()
    cancel(signal, reason=" wrong symbol ", by="alice")
    with pytest.raises(SignalNotActive):
        cancel(signal, reason="second", by="bob")
    signal.refresh_from_db()
    assert (signal.status, signal.cancel_reason) == ("active", "wrong symbol")
    event = ControlEvent.objects.get(kind=EventKind.SIGNAL_CANCELLED)
    assert (event.by, event.facts) == ("alice", {"signal": str(signal.pk), "reason": "wrong symbol"})


def test_cancellation_by_the_present_rules_is_dated_once_its_turn_has_come() -> None:
    """The ledger takes no time of more than five seconds ago, and others may hold the turn for longer."""
    signal = make_waiting(instrument=make_instrument())
    with count_queries() as asked:
        cancel(signal, reason="x", by="a")
    first = next(number for number, sql in enumerate(asked) if sql == database().clock)
    # In SQLite the transaction begins with the turn.
    assert connection.vendor == "sqlite" or any("pg_advisory_xact_lock" in sql for sql in asked[:first])


def test_closed_signal_can_neither_be_cancelled_nor_closed_again() -> None:
    signal = make_signal()
    assert closed(signal)
    assert not close_at(signal, Decimal(2), Decimal(2), "expired", NOON + timedelta(hours=1))
    with pytest.raises(SignalNotActive):
        cancel(signal, reason="too late", by="alice")
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price, signal.closed_at) == ("manual", BID, NOON)
    assert kinds().count(EventKind.SIGNAL_CLOSED) == 1


def cancelled(signal: Signal) -> object:
    cancel(signal, reason="x", by="a")
    return True


EITHER = pytest.mark.parametrize("act", [closed, cancelled], ids=["close", "cancel"])


@pytest.mark.django_db(transaction=True)
@EITHER
def test_act_that_is_rolled_back_is_not_told(act: Callable[[Signal], object]) -> None:
    signal, before = make_signal(), kinds()
    with suppress(ZeroDivisionError), transaction.atomic():
        act(signal)
        raise ZeroDivisionError
    signal.refresh_from_db()
    assert (signal.status, signal.cancel_reason, kinds()) == ("active", "", before)


@pytest.mark.django_db(transaction=True)
@EITHER
def test_act_that_cannot_be_told_does_not_happen(act: Callable[[Signal], object]) -> None:
    def rename(table: str, name: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} RENAME TO {name}")

    signal = make_signal()
    rename("accounts_controlevent", "accounts_controlevent_away")
    try:
        with pytest.raises(DatabaseError):
            act(signal)
    finally:
        rename("accounts_controlevent_away", "accounts_controlevent")
    signal.refresh_from_db()
    assert (signal.status, signal.cancel_reason) == ("active", "")


@pytest.mark.django_db(transaction=True)
@EITHER
def test_of_two_who_act_at_once_one_does(act: Callable[[Signal], object]) -> None:
    instrument = make_instrument()
    for _ in range(5):
        signal, ready = make_signal(instrument), threading.Barrier(2)

        def attempt(signal: Signal = signal, ready: threading.Barrier = ready) -> bool:
            ready.wait(PATIENCE_S)
            try:
                return bool(act(signal))
            except SignalNotActive:
                return False
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as threads:
            outcomes = [each.result(PATIENCE_S) for each in [threads.submit(attempt) for _ in range(2)]]
        assert sorted(outcomes) == [False, True]
    told = EventKind.SIGNAL_CLOSED if act is closed else EventKind.SIGNAL_CANCELLED
    assert kinds().count(told) == 5
