"""GET /api/orderflow/{symbol}, as the contract's row on order flow has it."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from instruments.models import Instrument
from market.models import LastQuote
from market.prices.order_flow import MinuteFlow
from market.store.checkpoints import FlowToWrite, write_flows
from tests.client import Api
from tests.contract.answers import refusal, to_ms
from tests.factories import make_instrument

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


def times(api: Api, query: str) -> list[str]:
    return [item["time"][11:16] for item in api.ask(PATH + query).json()["items"]]


@pytest.mark.parametrize(
    ("query", "first", "last", "count"),
    [
        ("", "18:20", "19:59", 100),
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


@pytest.mark.parametrize(
    ("symbol", "query", "following"),
    [
        ("EURUSD", "?start=2026-11-18T20:00:00Z", {"next": None}),
        ("EURUSD", "?start=2026-11-18T10:05:00Z&end=2026-11-18T10:05:00Z", {"next": None}),
        ("EURUSD", "?end=2026-11-18T10:00:00Z", {}),
        ("QUIET", "", {}),
    ],
)
def test_where_there_is_nothing_the_list_is_empty(
    shared: Api, symbol: str, query: str, following: dict[str, None]
) -> None:
    body = {"symbol": symbol, "items": [], "count": 0} | following
    assert shared.ask(f"/api/orderflow/{symbol}{query}").json() == body


def test_answer_has_exactly_the_fields_of_the_contract(shared: Api) -> None:
    instrument = make_instrument("BTCUSD")
    LastQuote.objects.create(instrument=instrument)
    write(instrument, minute(0, 1.204, 3.5, 2))
    response = shared.ask("/api/orderflow/btcusd")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert response.text == (
        '{"symbol":"BTCUSD","items":[{"time":"2026-11-18T10:00:00Z","bid_volume":1.204,"ask_volume":3.5,'
        '"delta":2.296,"cumulative_delta":0.5,"absorptions":2}],"count":1}'
    )


@pytest.mark.parametrize(
    ("span", "limit", "pages", "first", "count"),
    [
        (f"start={START_MS}", 77, 8, 0, 600),
        (f"start={START_MS}", 100, 6, 0, 600),
        (f"start={START_MS}&end={START_MS + 9 * MINUTE_MS}", 4, 3, 0, 9),
        (f"start={START_MS + 1}&end={START_MS + 9 * MINUTE_MS}", 4, 2, 1, 8),
    ],
)
def test_pages_together_are_the_range_until_next_is_null(
    shared: Api, span: str, limit: int, pages: int, first: int, count: int
) -> None:
    found, cursor = [], ""
    for _ in range(pages):
        page = shared.ask(f"{PATH}?{span}&limit={limit}{cursor}").json()
        found += [to_ms(item["time"].removesuffix("Z")) for item in page["items"]]
        cursor = f"&cursor={page['next']}"
    assert page["next"] is None
    assert found == [START_MS + number * MINUTE_MS for number in range(first, first + count)]


def test_cursor_holds_for_its_range_and_its_kind_of_prices_only(shared: Api, eurusd: Instrument) -> None:
    started = f"{PATH}?start={START_MS}"
    cursor = shared.ask(f"{started}&limit=1").json()["next"]
    assert shared.ask(f"{started}&limit=2&cursor={cursor}").json()["count"] == 2
    for query in ("?", f"?start={START_MS + 1}&", f"?start={START_MS}&end={START_MS + 9 * MINUTE_MS}&"):
        refusal(shared.ask(f"{PATH}{query}cursor={cursor}"), 400, "invalid_cursor", field="cursor")
    LastQuote.objects.filter(instrument=eurusd).update(simulated=True)
    try:
        refusal(shared.ask(f"{started}&cursor={cursor}"), 400, "invalid_cursor", field="cursor")
    finally:
        LastQuote.objects.filter(instrument=eurusd).update(simulated=False)


def test_walk_by_start_meets_every_minute_once(shared: Api) -> None:
    found: list[str] = []
    start_ms = START_MS
    while items := shared.ask(f"{PATH}?start={start_ms}&limit=77").json()["items"]:
        found += [item["time"] for item in items]
        start_ms = to_ms(found[-1].removesuffix("Z")) + MINUTE_MS
    assert len(found) == len(set(found)) == 600
