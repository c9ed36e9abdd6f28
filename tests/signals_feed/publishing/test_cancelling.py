"""Cancelling and closing: what changes, once, and with its event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from signals_feed.models import Signal
from signals_feed.publishing.actions import SignalNotActive, cancel
from tests.factories import NOON, make_instrument, make_signal
from tests.patience import PATIENCE_S
from tests.signals_feed.published_signals import close_at

pytestmark = pytest.mark.services

BID, ASK = Decimal("1.0850"), Decimal("1.0852")


def closed(signal: Signal, reason: str = "manual") -> bool:
    return close_at(signal, BID, ASK, reason, NOON)


def kinds() -> list[str]:
    return list(ControlEvent.objects.order_by("position").values_list("kind", flat=True))


@pytest.mark.django_db
@pytest.mark.parametrize("reason", ["", " ", "\n\t "])
def test_cancellation_needs_a_reason(reason: str) -> None:
    signal = make_signal()

    with pytest.raises(ValueError, match="reason"):
        cancel(signal, reason=reason, by="alice")


@pytest.mark.django_db
def test_cancelled_signal_is_marked_and_still_active() -> None:
    signal = make_signal()

    cancel(signal, reason=" wrong symbol ", by="alice")

    signal.refresh_from_db()
    assert (signal.status, signal.cancel_reason) == ("active", "wrong symbol")


@pytest.mark.django_db
def test_cancellation_tells_who_did_it_and_why() -> None:
    signal = make_signal()
    cancel(signal, reason="wrong symbol", by="alice")

    event = ControlEvent.objects.get(kind=EventKind.SIGNAL_CANCELLED)

    assert (event.by, event.facts) == ("alice", {"signal": str(signal.pk), "reason": "wrong symbol"})


@pytest.mark.django_db
def test_second_cancellation_is_refused_and_keeps_the_first_reason() -> None:
    signal = make_signal()
    cancel(signal, reason="first", by="alice")

    with pytest.raises(SignalNotActive):
        cancel(signal, reason="second", by="bob")

    assert Signal.objects.get().cancel_reason == "first"
    assert kinds().count(EventKind.SIGNAL_CANCELLED) == 1


@pytest.mark.django_db
def test_closed_signal_cannot_be_cancelled() -> None:
    with pytest.raises(SignalNotActive):
        cancel(make_signal(status="closed"), reason="too late", by="alice")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("terms", "price", "pnl"),
    [
        ({}, BID, "8.0"),
        (
            {"direction": "sell", "stop_loss": Decimal("1.09"), "take_profit": Decimal("1.08")},
            ASK,
            "-10.0",
        ),
        ({"tradable_price": Decimal("1.0845")}, BID, "5.0"),
    ],
    ids=["buy", "sell", "paid more than it named"],
)
def test_close_takes_the_exit_side_and_counts_the_result(
    terms: dict[str, Any], price: Decimal, pnl: str
) -> None:
    signal = make_signal(**terms)

    assert closed(signal)

    signal.refresh_from_db()
    assert (signal.status, signal.close_reason, signal.closed_at) == ("closed", "manual", NOON)
    assert (signal.close_price, signal.pnl) == (price, Decimal(pnl))


@pytest.mark.django_db
def test_close_is_told_once() -> None:
    signal = make_signal()

    assert [closed(signal), closed(signal)] == [True, False]
    assert kinds().count(EventKind.SIGNAL_CLOSED) == 1


@pytest.mark.django_db
def test_second_close_changes_nothing() -> None:
    signal = make_signal()
    closed(signal)

    close_at(signal, Decimal(2), Decimal(2), "expired", NOON + timedelta(hours=1))

    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("manual", BID)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "act", [closed, lambda signal: cancel(signal, reason="x", by="a")], ids=["close", "cancel"]
)
def test_act_that_is_rolled_back_is_not_told(act: Callable[[Signal], object]) -> None:
    signal, before = make_signal(), kinds()

    with suppress(ZeroDivisionError), transaction.atomic():
        act(signal)
        raise ZeroDivisionError

    signal.refresh_from_db()
    assert (signal.status, signal.cancel_reason, kinds()) == ("active", "", before)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "act", [closed, lambda signal: cancel(signal, reason="x", by="a")], ids=["close", "cancel"]
)
def test_act_that_cannot_be_told_does_not_happen(act: Callable[[Signal], object]) -> None:
    signal = make_signal()
    rename("accounts_controlevent", "accounts_controlevent_away")
    try:
        with pytest.raises(DatabaseError):
            act(signal)
    finally:
        rename("accounts_controlevent_away", "accounts_controlevent")

    signal.refresh_from_db()
    assert (signal.status, signal.cancel_reason) == ("active", "")


def rename(table: str, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {name}")


def race(act: Callable[[], object], rivals: int = 2) -> list[object]:
    """What each of several threads got from doing the same at the same moment."""
    outcomes: list[object] = []
    ready = threading.Barrier(rivals)

    def run() -> None:
        try:
            ready.wait(PATIENCE_S)
            outcomes.append(act())
        except SignalNotActive as error:
            outcomes.append(type(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(rivals)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    return outcomes


@pytest.mark.django_db(transaction=True)
def test_of_two_who_close_at_once_one_does() -> None:
    instrument = make_instrument()
    for _ in range(10):
        signal = make_signal(instrument)

        outcomes = race(lambda signal=signal: closed(signal))  # type: ignore[misc]

        assert sorted(map(bool, outcomes)) == [False, True]
    assert kinds().count(EventKind.SIGNAL_CLOSED) == 10


@pytest.mark.django_db(transaction=True)
def test_of_two_who_cancel_at_once_one_does() -> None:
    signal = make_signal()

    outcomes = race(lambda: cancel(signal, reason="x", by="alice"))

    assert sorted(map(str, outcomes)) == sorted(map(str, [None, SignalNotActive]))
    assert kinds().count(EventKind.SIGNAL_CANCELLED) == 1
