from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from time_machine import Traveller

from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import make_calendar, make_instrument, put_quote

FIELDS = {"symbol", "name", "type", "pip_size", "contract_size", "margin_rate", "min_lot", "max_lot"}
EXPANSIONS = ["digits", "hours", "state", "order_flow_source", "volume_kind"]


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    make_instrument(
        "XAUUSD", name="Gold", type="commodity", digits=2, pip_size=Decimal("0.1"), contract_size=100
    )
    make_instrument("BTCUSD", type="crypto", volume_kind="traded", order_flow_source="trades")
    weekdays = make_calendar(
        "weekdays", "Mon-Fri 13:00-14:00", timezone="UTC", holidays="2026-12-25 2026-11-27@13:30"
    )
    make_instrument("AAPL", type="stock", calendar=weekdays)
    make_instrument("SPX500", type="index")
    make_instrument("EURUSD", type="forex")
    make_instrument("OLDONE", active=False)


def item(shared: Api, symbol: str, query: str = "") -> dict[str, Any]:
    items = shared.ask(f"/api/symbols{query}").json()["items"]
    return next(item for item in items if item["symbol"] == symbol)


def test_body_is_items_and_count(shared: Api) -> None:
    response = shared.ask("/api/symbols")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert set(response.json()) == {"items", "count"}


def test_instrument_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    assert item(shared, "XAUUSD") == {
        "symbol": "XAUUSD",
        "name": "Gold",
        "type": "commodity",
        "pip_size": 0.1,
        "contract_size": 100,
        "margin_rate": 0.0333,
        "min_lot": 0.01,
        "max_lot": 50,
    }
    assert all(set(each) == FIELDS for each in shared.ask("/api/symbols").json()["items"])


@pytest.mark.parametrize("field", ["pip_size", "contract_size", "margin_rate", "min_lot", "max_lot"])
def test_sizes_are_json_numbers(shared: Api, field: str) -> None:
    for each in shared.ask("/api/symbols").json()["items"]:
        assert type(each[field]) in (int, float)


def test_instruments_come_in_order_of_their_symbols_without_inactive_ones(shared: Api) -> None:
    symbols = [each["symbol"] for each in shared.ask("/api/symbols").json()["items"]]

    assert symbols == ["AAPL", "BTCUSD", "EURUSD", "SPX500", "XAUUSD"]


def test_count_is_the_number_of_items(shared: Api) -> None:
    assert shared.ask("/api/symbols").json()["count"] == 5


def test_types_are_the_five_of_the_contract(shared: Api) -> None:
    types = {each["type"] for each in shared.ask("/api/symbols").json()["items"]}

    assert types == {"forex", "commodity", "crypto", "index", "stock"}


@pytest.mark.parametrize("name", EXPANSIONS)
def test_an_expansion_adds_its_one_field(shared: Api, name: str) -> None:
    assert set(item(shared, "XAUUSD", f"?expand={name}")) == FIELDS | {name}


def test_all_expansions_can_be_asked_for_at_once(shared: Api) -> None:
    expanded = item(shared, "AAPL", f"?expand={','.join(EXPANSIONS)}")

    assert set(expanded) == FIELDS | set(EXPANSIONS)
    assert expanded["digits"] == 5
    assert expanded["hours"] == {
        "timezone": "UTC",
        "sessions": "Mon-Fri 13:00-14:00",
        "holidays": ["2026-12-25", "2026-11-27@13:30"],
    }
    assert (expanded["volume_kind"], expanded["order_flow_source"]) == ("ticks", "tick_rule")


def test_expansions_say_where_volume_and_order_flow_come_from(shared: Api) -> None:
    expanded = item(shared, "BTCUSD", "?expand=order_flow_source,volume_kind")

    assert (expanded["volume_kind"], expanded["order_flow_source"]) == ("traded", "trades")


def test_expanded_state_is_closed_outside_the_hours(clock: Traveller, shared: Api) -> None:
    put_quote("AAPL")

    assert item(shared, "AAPL", "?expand=state")["state"] == "closed"


def test_expanded_state_is_open_while_quotes_come(clock: Traveller, shared: Api) -> None:
    put_quote("EURUSD")

    assert item(shared, "EURUSD", "?expand=state")["state"] == "open"


def test_expanded_state_is_stale_after_a_minute_of_silence(clock: Traveller, shared: Api) -> None:
    put_quote("EURUSD")
    clock.shift(61)

    assert item(shared, "EURUSD", "?expand=state")["state"] == "stale"


def test_unknown_expansion_is_refused_with_the_allowed_ones(shared: Api) -> None:
    response = shared.ask("/api/symbols?expand=digits,colour")

    refusal(response, 400, "invalid_parameter", field="expand", allowed=EXPANSIONS)
