"""Every stored candle, page by page."""

from __future__ import annotations

import csv
import io

import pytest

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime
from market.prices.candles import PriceBar
from market.store import candle_rows
from tests.client import Api
from tests.contract.answers import SECONDS, refusal
from tests.databases.queries import count_queries
from tests.factories import make_candle, make_instrument, put_quote

from .stored_minutes import CSV, NOON_MS, PATH, STORED, ask, minutes, page, store, times, walk

pytestmark = pytest.mark.services


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    for symbol in ("EURUSD", "EMPTY", "OTHER"):
        make_instrument(symbol)
    store("EURUSD", minutes(STORED))
    store("OTHER", minutes(2))


def test_body_has_exactly_the_fields_of_the_contract(shared: Api) -> None:
    answer = ask(shared)

    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"symbol", "timeframe", "ohlcv", "count", "next"}
    assert (body["symbol"], body["timeframe"], body["count"]) == ("EURUSD", "1m", len(body["ohlcv"]))
    assert all(set(c) == {"time", "open", "high", "low", "close", "volume"} for c in body["ohlcv"])
    assert all(SECONDS.fullmatch(candle["time"]) for candle in body["ohlcv"])


def test_page_has_a_thousand_unless_asked_otherwise(shared: Api) -> None:
    assert page(shared)["count"] == 1_000
    assert page(shared, "limit=10000")["count"] == STORED
    assert page(shared, "limit=1")["count"] == 1


def test_walk_has_every_candle_once_oldest_first(shared: Api) -> None:
    pages = walk(shared, "limit=250")

    assert [body["count"] for body in pages] == [250, 250, 250, 250, 205]
    walked = [time for body in pages for time in times(body)]
    assert walked == [NOON_MS + number * MINUTE_MS for number in range(STORED)]


@pytest.mark.parametrize("limit", [STORED, STORED + 1])
def test_page_that_holds_the_last_has_no_next(shared: Api, limit: int) -> None:
    assert page(shared, f"limit={limit}")["next"] is None
    assert page(shared, f"limit={STORED - 1}")["next"] is not None


def test_row_is_the_bar_of_the_market_path_digit_for_digit(shared: Api) -> None:
    make_instrument("BOTH")
    odd = [
        (1.08412, 0.1 + 0.2),
        (0.00003, 0.00000001),
        (123456.7, 12_345_678.12345678),
        (1.084125, 9e15),
        (1.5, 1e14 / 3),
    ]
    bars = [
        PriceBar(NOON_MS + number * MINUTE_MS, price, price, price, price, volume, price, price)
        for number, (price, volume) in enumerate(odd)
    ]
    # One whose prices are exactly between two of the instrument's digits is rounded as a float is.
    store("BOTH", bars)
    kept = candle_rows.read_candles(catalogue.get("BOTH"), "1m")
    runtime.prices.history(catalogue.get("BOTH")).restore_all("1m", kept)
    put_quote("BOTH")

    of_market = shared.ask("/api/market/BOTH?timeframe=1m&closed_only=true").text
    of_history = shared.ask("/api/market/BOTH/history").text

    rows = of_market.partition('"ohlcv":[')[2].partition("]")[0]
    assert len(rows) > 300
    assert of_history.partition('"ohlcv":[')[2].partition("]")[0] == rows


def test_no_number_has_an_exponent(shared: Api) -> None:
    make_instrument("SMALL", digits=8)
    store("SMALL", [PriceBar(NOON_MS, 1e-7, 3e-5, 1e-7, 2e-6, 1e-8, 3e-5, 1e-7)])

    for accept in (None, CSV):
        answer = shared.ask("/api/market/SMALL/history", headers={"Accept": accept} if accept else {})
        assert "0.0000001" in answer.text
        assert "e-" not in answer.text


@pytest.mark.parametrize("digits", [0, 1, 3])
def test_whole_prices_are_floats(shared: Api, digits: int) -> None:
    symbol = f"WHOLE{digits}"
    make_instrument(symbol, digits=digits)
    store(symbol, [PriceBar(NOON_MS, 100.0, 110.0, 90.0, 100.0, 20.0, 110.0, 90.0)])

    assert '"open":100.0,"high":110.0,"low":90.0,"close":100.0,"volume":20.0}' in (
        shared.ask(f"/api/market/{symbol}/history").text
    )


def test_symbol_has_any_case_and_the_path_a_slash(shared: Api) -> None:
    assert shared.ask("/api/market/eurusd/history/?limit=1").json()["symbol"] == "EURUSD"


def test_symbol_without_candles_has_an_empty_page(shared: Api) -> None:
    body = shared.ask("/api/market/EMPTY/history").json()

    assert body == {"symbol": "EMPTY", "timeframe": "1m", "ohlcv": [], "count": 0, "next": None}


def test_unknown_symbol_is_404(shared: Api) -> None:
    refusal(shared.ask("/api/market/EURUSDD/history"), 404, "symbol_not_found", field="symbol")


def test_each_timeframe_is_a_series_of_its_own(shared: Api) -> None:
    make_candle(Instrument.objects.get(symbol="EURUSD"), "1h")

    assert page(shared, "timeframe=1h")["count"] == 1
    refused = ask(shared, "timeframe=2h")
    allowed = ["1m", "5m", "15m", "1h", "4h", "1d"]
    refusal(refused, 400, "invalid_timeframe", field="timeframe", allowed=allowed)


# Which times


def test_start_is_included_and_end_is_not(shared: Api) -> None:
    body = page(shared, "start=2020-03-04T12:01:00Z&end=2020-03-04T12:04:00Z")

    assert times(body) == [NOON_MS + number * MINUTE_MS for number in (1, 2, 3)]


def test_times_may_be_milliseconds_or_have_another_zone(shared: Api) -> None:
    expected = page(shared, "start=2020-03-04T12:01:00Z&end=2020-03-04T12:04:00Z")["ohlcv"]

    assert page(shared, f"start={NOON_MS + MINUTE_MS}&end={NOON_MS + 4 * MINUTE_MS}")["ohlcv"] == expected
    assert (
        page(shared, "start=2020-03-04T14:01:00%2B02:00&end=2020-03-04T14:04:00%2B02:00")["ohlcv"] == expected
    )


def test_start_between_two_candles_leaves_the_first_out(shared: Api) -> None:
    assert times(page(shared, f"start={NOON_MS + 1}&limit=1")) == [NOON_MS + MINUTE_MS]


def test_end_of_a_walk_holds_for_all_its_pages(shared: Api) -> None:
    pages = walk(shared, f"limit=2&end={NOON_MS + 5 * MINUTE_MS}")

    assert [body["count"] for body in pages] == [2, 2, 1]


def test_span_of_no_time_is_empty_and_a_reversed_one_is_refused(shared: Api) -> None:
    assert page(shared, f"start={NOON_MS}&end={NOON_MS}")["count"] == 0
    refusal(ask(shared, f"start={NOON_MS + 1}&end={NOON_MS}"), 400, "invalid_parameter", field="end")


def test_start_in_the_future_is_empty(shared: Api) -> None:
    assert page(shared, "start=9999-12-31T23:59:59Z")["count"] == 0


@pytest.mark.parametrize("value", ["yesterday", "2020-03-04T12:00:00", "", "1e3"])
@pytest.mark.parametrize("name", ["start", "end"])
def test_time_without_its_zone_or_meaning_is_refused(shared: Api, name: str, value: str) -> None:
    refusal(ask(shared, f"{name}={value}"), 400, "invalid_parameter", field=name)


@pytest.mark.parametrize("limit", ["0", "10001"])
def test_limit_out_of_range_is_refused(shared: Api, limit: str) -> None:
    refusal(ask(shared, f"limit={limit}"), 400, "parameter_out_of_range", field="limit", max=10_000)


@pytest.mark.parametrize("limit", ["ten", "1_0", "+5", "1.0", ""])
def test_limit_that_is_no_plain_number_is_refused(shared: Api, limit: str) -> None:
    refusal(ask(shared, f"limit={limit}"), 400, "invalid_parameter", field="limit", max=10_000)


# Cursors


def altered(cursor: str) -> list[str]:
    """Each part changed, cut, or of something else."""
    body, _, signature = cursor.partition(".")
    other = "B" if body[3] != "B" else "C"
    return [
        f"{body[:3]}{other}{body[4:]}.{signature}",
        f"{body}.{signature[:-2]}",
        f"{body}.",
        body,
        "",
        "null",
        "x" * 600,
    ]


def test_altered_cursor_is_refused(shared: Api) -> None:
    cursor = page(shared, "limit=2")["next"]
    for wrong in altered(cursor):
        refusal(ask(shared, f"limit=2&cursor={wrong}"), 400, "invalid_cursor", field="cursor")


@pytest.mark.parametrize("others", ["timeframe=5m", "start=0", f"end={NOON_MS + 100 * MINUTE_MS}"])
def test_cursor_of_other_parameters_is_refused(shared: Api, others: str) -> None:
    cursor = page(shared, "limit=2")["next"]
    refusal(ask(shared, f"{others}&cursor={cursor}"), 400, "invalid_cursor", field="cursor")


def test_cursor_of_another_symbol_is_refused(shared: Api) -> None:
    cursor = page(shared, "limit=2")["next"]
    refused = shared.ask(f"/api/market/OTHER/history?cursor={cursor}")
    refusal(refused, 400, "invalid_cursor", field="cursor")


def test_limit_form_and_spelling_may_change_within_a_walk(shared: Api) -> None:
    cursor = page(shared, "limit=2&timeframe=1m")["next"]
    answer = shared.ask(f"/api/market/eurusd/history?limit=3&cursor={cursor}", headers={"Accept": CSV})

    assert [row["time"][11:16] for row in csv.DictReader(io.StringIO(answer.text))] == [
        "12:02",
        "12:03",
        "12:04",
    ]


def test_head_has_the_headers_and_no_body(shared: Api) -> None:
    answer = shared.ask(f"{PATH}?limit=10", method="HEAD", headers={"Accept": CSV})

    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["X-Next-Cursor"]


def test_page_costs_a_query_for_every_thousand_candles_and_one_more(shared: Api) -> None:
    for limit, queries in ((500, 1), (1_000, 1), (1_001, 2)):
        with count_queries() as asked:
            page(shared, f"start={NOON_MS}&limit={limit}")
        assert sum("market_candle" in query for query in asked) == queries + 1, asked
