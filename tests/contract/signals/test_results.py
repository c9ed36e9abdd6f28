"""What a closed signal says of its result."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from instruments.models import Instrument
from signals_feed.models import Signal
from tests.client import Api
from tests.factories import NOON, make_instrument, make_signal, make_user

pytestmark = pytest.mark.services


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    make_instrument("EURUSD")
    make_instrument("USDJPY", digits=3, pip_size=Decimal("0.01"))


def closed(symbol: str, **terms: Any) -> Signal:
    return make_signal(Instrument.objects.get(symbol=symbol), make_user(), status="closed", **terms)


def told(shared: Api, signal: Signal) -> dict[str, Any]:
    items = shared.ask("/api/signals?status=closed").json()["items"]
    return next(item for item in items if item["id"] == str(signal.pk))


def test_closed_signal_carries_the_six_fields_of_its_result(shared: Api) -> None:
    signal = closed(
        "USDJPY",
        direction="sell",
        entry=Decimal("151.20"),
        stop_loss=Decimal("151.60"),
        take_profit=Decimal("150.00"),
        close_price=Decimal("151.60"),
        close_reason="stop_loss",
        closed_at=NOON + timedelta(hours=3, milliseconds=250),
    )

    assert told(shared, signal) == {
        "id": str(signal.pk),
        "user": signal.user.username,
        "symbol": "USDJPY",
        "direction": "sell",
        "entry": 151.2,
        "stop_loss": 151.6,
        "take_profit": 150,
        "status": "closed",
        "timestamp": "2026-11-18T12:00:00.000Z",
        "pnl": -40,
        "pnl_percent": -0.2646,
        "pnl_r": -1,
        "close_price": 151.6,
        "closed_at": "2026-11-18T15:00:00.250Z",
        "close_reason": "stop_loss",
    }


@pytest.mark.parametrize("reason", ["take_profit", "stop_loss", "manual", "expired", "cancelled"])
def test_reason_is_one_of_five(shared: Api, reason: str) -> None:
    signal = closed(
        "EURUSD", close_reason=reason, cancel_reason="a written one" if reason == "cancelled" else ""
    )

    item = told(shared, signal)

    assert item["close_reason"] == reason
    assert "a written one" not in str(item)


@pytest.mark.parametrize(
    ("gained", "pnl"),
    [("0.00010", 1), ("0.000125", 1.3), ("-0.000125", -1.3), ("0.000124", 1.2), ("0", 0)],
)
def test_pnl_is_in_pips_to_one_decimal_half_away_from_zero(shared: Api, gained: str, pnl: float) -> None:
    signal = closed("EURUSD", close_price=Decimal("1.0842") + Decimal(gained))

    assert told(shared, signal)["pnl"] == pnl


def test_result_runs_from_the_worse_of_entry_and_tradable_price(shared: Api) -> None:
    signal = closed("EURUSD", tradable_price=Decimal("1.0845"), close_price=Decimal("1.0855"))

    item = told(shared, signal)

    assert (item["entry"], item["pnl"]) == (1.0842, 10)
