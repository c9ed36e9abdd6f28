"""GET /api/signals and GET /api/signals/{id}: which signals, what is said of them, and of their results."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from accounts.models import User
from instruments.models import Instrument
from signals_feed.models import Signal
from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import NOON, make_instrument, make_signal, make_user

pytestmark = pytest.mark.services

FIELDS = {"id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit", "status", "timestamp"}
RESULT = {"pnl", "pnl_percent", "pnl_r", "close_price", "closed_at", "close_reason"}
NO_SIGNAL = "There is no signal with this id. GET /api/signals?status=all lists them."


def uuid(last: int) -> UUID:
    return UUID(int=last)


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> None:
    """One instrument for each question, so that a test may filter for its own."""
    anna, ben = make_user("anna"), make_user("ben@home")
    make_user("reader")
    eurusd, ties, _ = (make_instrument(symbol) for symbol in ("EURUSD", "TIES", "EMPTY"))
    make_instrument("USDJPY", digits=3, pip_size=Decimal("0.01"))
    make_signal(eurusd, anna, id=uuid(1), published_at=NOON)
    make_signal(eurusd, anna, id=uuid(2), published_at=NOON + timedelta(seconds=2), status="closed")
    make_signal(eurusd, ben, id=uuid(3), published_at=NOON + timedelta(seconds=1))
    for last in (11, 13, 12):
        make_signal(ties, anna, id=uuid(last))
    dormant = make_instrument("DORMANT", active=False)
    make_signal(dormant, anna, id=uuid(31), published_at=NOON - timedelta(days=300))
    many, crowd = make_instrument("MANY"), make_user("crowd")
    prices = {"entry": 2, "tradable_price": 2, "stop_loss": 1, "take_profit": 3}
    terms = {"direction": "buy", "published_at": NOON - timedelta(days=1), **prices}
    Signal.objects.bulk_create(Signal(user=crowd, instrument=many, **terms) for _ in range(501))


def items(shared: Api, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shared.ask(f"/api/signals?{query}").json()["items"]
    return found


def test_active_signal_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    response = shared.ask("/api/signals?symbol=EURUSD")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    body = response.json()
    assert (set(body), body["count"]) == ({"items", "count"}, 2)
    assert body["items"][-1] == {
        "id": str(uuid(1)),
        "user": "anna",
        "symbol": "EURUSD",
        "direction": "buy",
        "entry": 1.0842,
        "stop_loss": 1.081,
        "take_profit": 1.09,
        "status": "active",
        "timestamp": "2026-11-18T12:00:00.000Z",
    }
    everything = items(shared, "status=all&limit=500")
    assert {item["status"] for item in everything} == {"active", "closed"}
    for item in everything:
        assert set(item) == (FIELDS if item["status"] == "active" else FIELDS | RESULT)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("symbol=EURUSD", [3, 1]),
        ("symbol=EURUSD&status=active", [3, 1]),
        ("symbol=EURUSD&status=closed", [2]),
        ("symbol=EURUSD&status=all", [2, 3, 1]),
        ("symbol=eurusd", [3, 1]),
        ("symbol=EUR%55SD", [3, 1]),
        ("symbol=TIES", [13, 12, 11]),
        ("symbol=dormant", [31]),
        ("symbol=EMPTY", []),
        ("user=anna&status=all", [2, 13, 12, 11, 1, 31]),
        ("user=anna", [13, 12, 11, 1, 31]),
        ("user=anna&symbol=EURUSD&status=closed", [2]),
        ("user=ben%40home&limit=1", [3]),
        ("user=ben%40home&status=closed", []),
        ("status=all&limit=6", [2, 3, 13, 12, 11, 1]),
    ],
)
def test_filters_leave_the_newest_first_and_ties_by_id_descending(
    shared: Api, query: str, found: list[int]
) -> None:
    assert [UUID(item["id"]).int for item in items(shared, query)] == found


@pytest.mark.parametrize(
    ("query", "count"), [("", 50), ("&limit=1", 1), ("&limit=51", 51), ("&limit=500", 500)]
)
def test_limit_is_50_by_default_and_500_at_most(shared: Api, query: str, count: int) -> None:
    body = shared.ask(f"/api/signals?symbol=MANY{query}").json()
    assert len(body["items"]) == body["count"] == count


@pytest.mark.parametrize("user", ["nobody", "reader", "Anna", "", "%00", "anna%20", "'or 1=1"])
def test_who_never_published_is_404_whether_or_not_somebody_has_the_name(shared: Api, user: str) -> None:
    refusal(shared.ask(f"/api/signals?user={user}"), 404, "not_found", field="user")


@pytest.mark.parametrize("signal", [1, 2, 31])
def test_one_signal_is_what_the_feed_shows_of_it(shared: Api, signal: int) -> None:
    (listed,) = (each for each in items(shared, "status=all&user=anna") if each["id"] == str(uuid(signal)))
    for path in (uuid(signal), f"{str(uuid(signal)).upper()}/"):
        response = shared.ask(f"/api/signals/{path}")
        assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
        assert response.json() == listed


@pytest.mark.parametrize(
    "signal",
    [
        *(str(uuid(99)), "none", uuid(1).hex, f"{{{uuid(1)}}}", f"urn:uuid:{uuid(1)}", f"{uuid(1)}0"),
        *("ledgers", "1", "%00", "%FF", "x" * 5_000),
    ],
)
def test_unknown_id_is_404(shared: Api, signal: str) -> None:
    for path in (f"/api/signals/{signal}", f"/api/signals/{signal}/proof"):
        assert refusal(shared.ask(path), 404, "not_found") == NO_SIGNAL


# What a closed signal says of its result.
def told(shared: Api, symbol: str, **terms: Any) -> tuple[Signal, dict[str, Any]]:
    user = User.objects.filter(username="reader").first()
    signal = make_signal(Instrument.objects.get(symbol=symbol), user, status="closed", **terms)
    return signal, shared.ask(f"/api/signals/{signal.pk}").json()


def test_closed_signal_carries_the_six_fields_of_its_result(shared: Api) -> None:
    prices = {"entry": "151.20", "stop_loss": "151.60", "take_profit": "150.00", "close_price": "151.60"}
    signal, item = told(
        shared,
        "USDJPY",
        **{name: Decimal(price) for name, price in prices.items()},
        direction="sell",
        close_reason="stop_loss",
        closed_at=NOON + timedelta(hours=3, milliseconds=250),
    )
    assert item == {
        "id": str(signal.pk),
        "user": "reader",
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
    why = "a written one" if reason == "cancelled" else ""
    _, item = told(shared, "EURUSD", close_reason=reason, cancel_reason=why)
    assert item["close_reason"] == reason
    assert "a written one" not in str(item)


@pytest.mark.parametrize(
    ("tradable", "closed_at", "pnl"),
    [
        ("1.0842", "1.0843", 1),
        ("1.0842", "1.084325", 1.3),
        ("1.0842", "1.084075", -1.3),
        ("1.0842", "1.084324", 1.2),
        ("1.0842", "1.0842", 0),
        ("1.0845", "1.0855", 10),
    ],
)
def test_pnl_is_in_pips_half_away_from_zero_from_the_worse_of_entry_and_tradable_price(
    shared: Api, tradable: str, closed_at: str, pnl: float
) -> None:
    prices = {"tradable_price": Decimal(tradable), "close_price": Decimal(closed_at)}
    _, item = told(shared, "EURUSD", **prices)
    assert (item["entry"], item["pnl"]) == (1.0842, pnl)
