"""Signals that the database itself refuses: impossible ones, and changes of what was published."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from signals_feed.models import Signal
from tests.factories import NOON, RESULT, make_instrument, make_signal, make_user

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


def create(**fields: Any) -> Signal:
    """As it is written, without the factory's reckoning of a result."""
    terms = {"direction": "buy", "entry": "1.0842", "stop_loss": "1.0810", "take_profit": "1.0900"}
    given = {"tradable_price": "1.0842", "published_at": NOON, **terms, **fields}
    begun = {name: value for name, value in given.items() if name not in RESULT}
    signal = Signal.objects.create(instrument=make_instrument(), user=make_user(), **begun)
    # What is closed was active before.
    ended = {name: value for name, value in given.items() if name in RESULT}
    if ended:
        Signal.objects.filter(pk=signal.pk).update(**ended)
        signal.refresh_from_db()
    return signal


def refuses(name: str, **fields: Any) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        create(**fields)


def test_whole_closed_signal_is_taken() -> None:
    assert create(**CLOSED).status == "closed"


@pytest.mark.parametrize("field", [field for field in CLOSED if field not in ("status", "close_reason")])
def test_closed_signal_without_a_part_of_its_result(field: str) -> None:
    refuses("signal_closed_iff_result", **CLOSED | {field: None})


@pytest.mark.parametrize(
    "bad",
    [
        {"close_reason": ""},
        {"close_reason": "whim"},
        {"close_price": Decimal(0)},
        {"close_price": Decimal(-1)},
        {"closed_at": NOON - timedelta(seconds=1)},
    ],
)
def test_closed_signal_with_a_bad_part(bad: dict[str, Any]) -> None:
    refuses("signal_closed_iff_result", **CLOSED | bad)


@pytest.mark.parametrize("field", [field for field in CLOSED if field != "status"])
def test_active_signal_with_a_part_of_a_result(field: str) -> None:
    refuses("signal_closed_iff_result", **{field: CLOSED[field]})


@pytest.mark.parametrize("status", ["", "open", "CLOSED"])
def test_unknown_status(status: str) -> None:
    refuses("signal_closed_iff_result", status=status)


@pytest.mark.parametrize(
    "bad",
    [
        {"stop_loss": "1.0842"},
        {"stop_loss": "1.0850"},
        {"take_profit": "1.0842"},
        {"take_profit": "1.0800"},
        {"direction": "sell"},
        {"direction": ""},
        {"direction": "BUY"},
        SELL | {"stop_loss": "1.0842"},
        SELL | {"stop_loss": "1.0800"},
        SELL | {"take_profit": "1.0842"},
        SELL | {"take_profit": "1.0900"},
    ],
)
def test_levels_on_the_wrong_side(bad: dict[str, Any]) -> None:
    refuses("signal_levels_are_on_their_sides", **bad)


@pytest.mark.parametrize(
    "bad",
    [{"stop_loss": "0"}, {"stop_loss": "-1"}, {"tradable_price": "0"}, SELL | {"take_profit": "0"}],
)
def test_prices_that_are_not_positive(bad: dict[str, Any]) -> None:
    refuses("signal_prices_are_positive", **bad)


def test_cancelled_without_a_reason() -> None:
    refuses("signal_cancelled_has_reason", **CLOSED | {"close_reason": "cancelled"})


@pytest.mark.parametrize(
    "change",
    [
        {"direction": "sell", "stop_loss": "1.09", "take_profit": "1.08"},
        {"entry": "1.0843"},
        {"stop_loss": "1.0811"},
        {"take_profit": "1.0901"},
        {"tradable_price": "1.0843"},
        {"published_at": NOON + timedelta(milliseconds=1)},
    ],
)
def test_published_terms_cannot_change(change: dict[str, Any]) -> None:
    signal = make_signal()
    with pytest.raises(IntegrityError, match="keeps its terms"), transaction.atomic():
        Signal.objects.filter(pk=signal.pk).update(**change)


def test_published_signal_cannot_move_to_another_instrument() -> None:
    signal, other = make_signal(), make_instrument("GBPUSD")
    with pytest.raises(IntegrityError, match="keeps its terms"), transaction.atomic():
        Signal.objects.filter(pk=signal.pk).update(instrument=other)


def test_published_signal_cannot_be_given_to_another_publisher() -> None:
    signal, other = make_signal(), make_user()
    with pytest.raises(IntegrityError, match="keeps its terms"), transaction.atomic():
        Signal.objects.filter(pk=signal.pk).update(user=other)


ACTIVE = {"status": "active", "close_reason": ""} | dict.fromkeys(
    ("close_price", "closed_at", "pnl", "pnl_percent", "pnl_r")
)


@pytest.mark.parametrize("change", [ACTIVE, {"pnl": Decimal(999)}, {"close_reason": "manual"}])
def test_closed_signal_neither_reopens_nor_changes(change: dict[str, Any]) -> None:
    signal = make_signal(status="closed")
    with pytest.raises(IntegrityError, match="does not change"), transaction.atomic():
        Signal.objects.filter(pk=signal.pk).update(**change)


def test_active_signal_can_be_saved_again_unchanged() -> None:
    signal = Signal.objects.get(pk=make_signal().pk)
    signal.cancel_reason = "typing error"
    signal.save()

    assert Signal.objects.get().cancel_reason == "typing error"
