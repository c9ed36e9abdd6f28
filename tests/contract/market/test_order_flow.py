"""GET /api/orderflow/{symbol}, as the contract's row on order flow has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.times import MINUTE_MS
from instruments.models import Instrument, WithheldSource
from instruments.saving import hand_on_again, withhold
from market.models import LastQuote
from market.prices.order_flow import MinuteFlow
from market.store.flow_minutes import FlowToWrite, write_flows
from tests.client import Api
from tests.contract.answers import SECONDS, refusal, to_ms
from tests.factories import make_instrument
from tests.patience import wait_until

pytestmark = pytest.mark.services

START_MS = to_ms("2026-11-18 10:00")
PATH = "/api/orderflow/EURUSD"


def minute(number: int, bid: float = 1.0, ask: float = 1.5, absorptions: int = 0) -> MinuteFlow:
    return MinuteFlow(START_MS + number * MINUTE_MS, bid, ask, round(0.5 * number + 0.5, 8), absorptions)


def write(instrument: Instrument, *minutes: MinuteFlow, simulated: bool = False) -> None:
    write_flows([FlowToWrite(instrument.pk, simulated, each) for each in minutes])


@pytest.fixture(scope="module")
def eurusd(shared: Api) -> Instrument:
    eurusd = make_instrument("EURUSD", source="push:desk")
    LastQuote.objects.create(instrument=eurusd)
    write(eurusd, *map(minute, range(600)))
    write(eurusd, minute(7, 9.0, 9.0), minute(900), simulated=True)
    return eurusd


@pytest.fixture(scope="module", autouse=True)
def others(shared: Api, eurusd: Instrument) -> None:
    make_instrument("QUIET")
    make_instrument("DORMANT", active=False)


def times(api: Api, query: str) -> list[str]:
    return [item["time"][11:16] for item in api.ask(PATH + query).json()["items"]]


def test_answer_has_exactly_the_fields_of_the_contract(shared: Api) -> None:
    instrument = make_instrument("BTCUSD")
    LastQuote.objects.create(instrument=instrument)
    write(instrument, minute(0, 1.204, 3.5, 2))

    response = shared.ask("/api/orderflow/btcusd")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    body: dict[str, Any] = response.json()
    assert list(body) == ["symbol", "items", "count"]
    assert (body["symbol"], body["count"]) == ("BTCUSD", 1)
    fields = ["time", "bid_volume", "ask_volume", "delta", "cumulative_delta", "absorptions"]
    (item,) = body["items"]
    assert list(item) == fields
    assert [item[name] for name in fields] == ["2026-11-18T10:00:00Z", 1.204, 3.5, 2.296, 0.5, 2]
    assert SECONDS.fullmatch(item["time"])


def test_the_newest_100_come_by_default_oldest_first(shared: Api) -> None:
    found = times(shared, "")

    assert (len(found), found[0], found[-1]) == (100, "18:20", "19:59")


@pytest.mark.parametrize(
    ("query", "first", "last", "count"),
    [
        ("?limit=2", "19:58", "19:59", 2),
        ("?limit=500", "11:40", "19:59", 500),
        ("?start=2026-11-18T10:00:00Z", "10:00", "11:39", 100),
        ("?start=2026-11-18T10:00:00.001Z&limit=3", "10:01", "10:03", 3),
        ("?start=2026-11-18T11:00:00%2B01:00&limit=3", "10:00", "10:02", 3),
        (f"?start={START_MS + 5 * MINUTE_MS}&limit=1", "10:05", "10:05", 1),
        ("?end=2026-11-18T10:03:00Z&limit=2", "10:01", "10:02", 2),
        ("?end=2026-11-18T10:02:00.001Z", "10:00", "10:02", 3),
        ("?start=2026-11-18T10:01:00Z&end=2026-11-18T10:03:00Z", "10:01", "10:02", 2),
    ],
)
def test_start_is_inclusive_and_end_exclusive(
    shared: Api, query: str, first: str, last: str, count: int
) -> None:
    found = times(shared, query)

    assert (found[0], found[-1], len(found)) == (first, last, count)
    assert found == sorted(found)


def test_walk_by_start_meets_every_minute_once(shared: Api) -> None:
    found: list[str] = []
    start_ms = START_MS
    while items := shared.ask(f"{PATH}?start={start_ms}&limit=77").json()["items"]:
        found += [item["time"] for item in items]
        start_ms = to_ms(found[-1].removesuffix("Z")) + MINUTE_MS

    assert len(found) == len(set(found)) == 600


@pytest.mark.parametrize(
    "query", ["?start=2026-11-18T20:00:00Z", "?start=2026-11-18T10:05:00Z&end=2026-11-18T10:05:00Z"]
)
def test_where_there_is_nothing_the_list_is_empty(shared: Api, query: str) -> None:
    assert shared.ask(PATH + query).json() == {"symbol": "EURUSD", "items": [], "count": 0}


def test_instrument_without_order_flow_has_an_empty_list(shared: Api) -> None:
    assert shared.ask("/api/orderflow/QUIET").json() == {"symbol": "QUIET", "items": [], "count": 0}


@pytest.mark.parametrize("symbol", ["NOPE", "DORMANT"])
def test_unknown_symbol_is_404_before_a_bad_parameter(shared: Api, symbol: str) -> None:
    response = shared.ask(f"/api/orderflow/{symbol}?limit=0")

    refusal(response, 404, "symbol_not_found", field="symbol")


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("", "invalid_parameter"),
        ("yesterday", "invalid_parameter"),
        ("2026-11-18T10:00:00", "invalid_parameter"),
        ("-1", "invalid_parameter"),
        ("1e3", "invalid_parameter"),
        ("1969-12-31T00:00:00Z", "parameter_out_of_range"),
        ("9" * 30, "parameter_out_of_range"),
    ],
)
def test_bad_time_is_refused(shared: Api, name: str, value: str, code: str) -> None:
    refusal(shared.ask(f"{PATH}?{name}={value}"), 400, code, field=name)


@pytest.mark.parametrize(
    ("value", "code"),
    [("0", "parameter_out_of_range"), ("501", "parameter_out_of_range"), ("+5", "invalid_parameter")],
)
def test_bad_limit_is_refused(shared: Api, value: str, code: str) -> None:
    refusal(shared.ask(f"{PATH}?limit={value}"), 400, code, field="limit", max=500)


@pytest.fixture
def withheld() -> Iterator[WithheldSource]:
    yield WithheldSource(name="push", why="Its terms forbid it.")
    hand_on_again(WithheldSource.objects.all(), by="test")


def test_what_may_not_be_handed_on_is_not_found(shared: Api, withheld: WithheldSource) -> None:
    withhold(withheld, by="test")
    wait_until(lambda: shared.ask(PATH).status_code == 404)

    message = refusal(shared.ask(PATH), 404, "symbol_not_found", field="symbol")
    assert "terms of its source" in message
