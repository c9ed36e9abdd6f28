from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from instruments.models import Instrument
from signals_feed.models import Signal
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal
from tests.factories import NOON, make_instrument, make_signal, make_user

pytestmark = pytest.mark.services

FIELDS = {"id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit", "status", "timestamp"}
RESULT = {"pnl", "pnl_percent", "pnl_r", "close_price", "closed_at", "close_reason"}


def uuid(last: int) -> UUID:
    return UUID(int=last)


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> None:
    """One instrument for each question, so that a test may filter for its own."""
    for symbol in ("EURUSD", "TIES", "EMPTY"):
        make_instrument(symbol)
    anna = make_user("anna")
    eurusd = Instrument.objects.get(symbol="EURUSD")
    make_signal(eurusd, anna, id=uuid(1), published_at=NOON)
    make_signal(eurusd, anna, id=uuid(2), published_at=NOON + timedelta(seconds=2), status="closed")
    make_signal(eurusd, anna, id=uuid(3), published_at=NOON + timedelta(seconds=1))
    for last in (11, 13, 12):
        make_signal(Instrument.objects.get(symbol="TIES"), anna, id=uuid(last))
    make_signal(make_instrument("DORMANT", active=False), anna, id=uuid(31))
    many = make_instrument("MANY")
    prices = {"entry": 2, "tradable_price": 2, "stop_loss": 1, "take_profit": 3}
    terms = {"direction": "buy", "published_at": NOON - timedelta(days=1), **prices}
    Signal.objects.bulk_create(Signal(user=anna, instrument=many, **terms) for _ in range(501))


def items(shared: Api, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shared.ask(f"/api/signals?{query}").json()["items"]
    return found


def ids(shared: Api, query: str) -> list[int]:
    return [UUID(item["id"]).int for item in items(shared, query)]


def test_body_is_items_and_count(shared: Api) -> None:
    response = shared.ask("/api/signals")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert set(response.json()) == {"items", "count"}


def test_active_signal_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    assert items(shared, "symbol=EURUSD")[-1] == {
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


def test_no_active_signal_carries_any_of_a_result(shared: Api) -> None:
    everything = items(shared, "status=all&limit=500")

    assert {item["status"] for item in everything} == {"active", "closed"}
    for item in everything:
        assert set(item) == (FIELDS if item["status"] == "active" else FIELDS | RESULT)


def test_numbers_are_json_numbers_and_times_have_milliseconds(shared: Api) -> None:
    for item in items(shared, "status=closed"):
        prices = ("entry", "stop_loss", "take_profit", "close_price", "pnl", "pnl_percent", "pnl_r")
        assert all(type(item[name]) in (int, float) for name in prices)
        assert MILLISECONDS.fullmatch(item["timestamp"])
        assert MILLISECONDS.fullmatch(item["closed_at"])


def test_newest_come_first(shared: Api) -> None:
    assert ids(shared, "symbol=EURUSD&status=all") == [2, 3, 1]


def test_ties_are_ordered_by_id_descending(shared: Api) -> None:
    assert ids(shared, "symbol=TIES") == [13, 12, 11]


@pytest.mark.parametrize(
    ("query", "found"),
    [("", [3, 1]), ("&status=active", [3, 1]), ("&status=closed", [2]), ("&status=all", [2, 3, 1])],
)
def test_status_filters_and_is_active_by_default(shared: Api, query: str, found: list[int]) -> None:
    assert ids(shared, f"symbol=EURUSD{query}") == found


@pytest.mark.parametrize("symbol", ["eurusd", "EurUsd", "EUR%55SD"])
def test_case_and_coding_of_the_symbol_do_not_matter(shared: Api, symbol: str) -> None:
    assert ids(shared, f"symbol={symbol}") == [3, 1]


def test_without_a_symbol_all_instruments_are_in_the_feed(shared: Api) -> None:
    assert {item["symbol"] for item in items(shared, "status=all")} >= {"EURUSD", "TIES", "MANY"}


def test_known_symbol_without_signals_is_an_empty_feed(shared: Api) -> None:
    assert shared.ask("/api/signals?symbol=EMPTY").json() == {"items": [], "count": 0}


@pytest.mark.parametrize("symbol", ["NOSUCH", "", "EURUSD,TIES", "*", "EURUSD%00", "%D0%95URUSD", "E" * 2000])
def test_unknown_symbol_is_404(shared: Api, symbol: str) -> None:
    refusal(shared.ask(f"/api/signals?symbol={symbol}"), 404, "symbol_not_found", field="symbol")


def test_unknown_symbol_suggests_a_close_one(shared: Api) -> None:
    message = refusal(shared.ask("/api/signals?symbol=EURUD"), 404, "symbol_not_found", field="symbol")

    assert "EURUSD" in message


def test_unknown_symbol_is_told_before_a_bad_parameter(shared: Api) -> None:
    refusal(shared.ask("/api/signals?limit=0&symbol=NOSUCH"), 404, "symbol_not_found", field="symbol")


def test_symbol_given_twice_is_refused(shared: Api) -> None:
    refusal(shared.ask("/api/signals?symbol=EURUSD&symbol=TIES"), 400, "invalid_parameter", field="symbol")


def test_signals_of_an_inactive_instrument_stay_filterable(shared: Api) -> None:
    assert ids(shared, "symbol=dormant") == [31]
    assert "DORMANT" not in {each["symbol"] for each in shared.ask("/api/symbols").json()["items"]}


@pytest.mark.parametrize(
    ("query", "count"), [("", 50), ("&limit=1", 1), ("&limit=51", 51), ("&limit=500", 500)]
)
def test_limit_is_50_by_default_and_500_at_most(shared: Api, query: str, count: int) -> None:
    body = shared.ask(f"/api/signals?symbol=MANY{query}").json()

    assert len(body["items"]) == body["count"] == count


@pytest.mark.parametrize("limit", ["0", "501"])
def test_limit_out_of_range_is_refused_with_the_most(shared: Api, limit: str) -> None:
    response = shared.ask(f"/api/signals?limit={limit}")

    refusal(response, 400, "parameter_out_of_range", field="limit", max=500)


@pytest.mark.parametrize("status", ["open", "ACTIVE", "", "active,closed"])
def test_other_statuses_are_refused_with_the_allowed_ones(shared: Api, status: str) -> None:
    response = shared.ask("/api/signals", params={"status": status})

    refusal(response, 400, "invalid_parameter", field="status", allowed=["active", "closed", "all"])
