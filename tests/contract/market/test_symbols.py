"""GET /api/symbols and /api/session: what is on offer, and how the service is."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from time_machine import Traveller

from accounts.open_streams.registry import open_streams
from tests.accounts.open_streams.claims import claimed, release
from tests.client import Api, Server
from tests.factories import make_calendar, make_instrument, make_signal, put_quote

pytestmark = pytest.mark.services

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
    for status in ("active", "active", "closed"):
        make_signal(status=status)


def item(shared: Api, symbol: str, query: str = "") -> dict[str, Any]:
    items = shared.ask(f"/api/symbols{query}").json()["items"]
    return next(item for item in items if item["symbol"] == symbol)


def test_instruments_on_offer_come_by_symbol_with_exactly_the_fields_of_the_specification(
    shared: Api,
) -> None:
    response = shared.ask("/api/symbols")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    body = response.json()
    assert (set(body), body["count"]) == ({"items", "count"}, 5)
    types = {"AAPL": "stock", "BTCUSD": "crypto", "EURUSD": "forex", "SPX500": "index", "XAUUSD": "commodity"}
    assert [(each["symbol"], each["type"]) for each in body["items"]] == list(types.items())
    assert body["items"][-1] == {
        "symbol": "XAUUSD",
        "name": "Gold",
        "type": "commodity",
        "pip_size": 0.1,
        "contract_size": 100,
        "margin_rate": 0.0333,
        "min_lot": 0.01,
        "max_lot": 50,
    }
    for each in body["items"]:
        assert set(each) == FIELDS
        assert all(type(each[name]) in (int, float) for name in FIELDS - {"symbol", "name", "type"})


def test_an_expansion_adds_its_one_field_and_all_can_be_asked_for_at_once(shared: Api) -> None:
    for name in EXPANSIONS:
        assert set(item(shared, "XAUUSD", f"?expand={name}")) == FIELDS | {name}
    query = f"?expand={','.join(EXPANSIONS)}"
    stock, crypto = item(shared, "AAPL", query), item(shared, "BTCUSD", query)
    assert set(stock) == FIELDS | set(EXPANSIONS)
    assert stock["digits"] == 5
    assert stock["hours"] == {
        "timezone": "UTC",
        "sessions": "Mon-Fri 13:00-14:00",
        "holidays": ["2026-12-25", "2026-11-27@13:30"],
    }
    kinds = [(each["volume_kind"], each["order_flow_source"]) for each in (stock, crypto)]
    assert kinds == [("ticks", "tick_rule"), ("traded", "trades")]


@pytest.mark.parametrize(
    ("symbol", "silent_s", "state"), [("AAPL", 0, "closed"), ("EURUSD", 0, "open"), ("EURUSD", 61, "stale")]
)
def test_expanded_state_is_that_of_the_market(
    clock: Traveller, shared: Api, symbol: str, silent_s: int, state: str
) -> None:
    put_quote(symbol)
    clock.shift(silent_s)
    assert item(shared, symbol, "?expand=state")["state"] == state


# The session.
def test_session_counts_what_is_active(clock: Traveller, shared: Api) -> None:
    clock.shift(0.5)
    response = shared.ask("/api/session")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    body = response.json()
    assert body.pop("ai_models_available")[0] == "tickwire-analyst-1"
    # It began by a clock that was set back since.
    assert body == {
        "instruments_active": 5,
        "clients_connected": 0,
        "signals_active": 2,
        "uptime_seconds": 0,
        "server_time": "2026-11-18T12:00:00.500Z",
    }
    assert {type(value) for value in body.values()} == {int, str}


def test_clients_are_the_open_streams_of_all_accounts(shared_server: Server, shared: Api) -> None:
    slots = [shared_server.run(claimed(open_streams, account)) for account in (1, 1, 2)]
    during = shared.ask("/api/session").json()["clients_connected"]
    shared_server.run(release(slots))
    assert (during, shared.ask("/api/session").json()["clients_connected"]) == (3, 0)
