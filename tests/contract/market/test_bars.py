from __future__ import annotations

from typing import Any

import pytest
from time_machine import Traveller

from tests.client import Api
from tests.contract.answers import MILLISECONDS, SECONDS, refusal, to_ms
from tests.factories import make_instrument, put_candles, put_quote

pytestmark = pytest.mark.services

HOUR_MS = 3_600_000
NOON_MS = to_ms("2026-11-18 12:00")
HOURS = [NOON_MS - number * HOUR_MS for number in range(1, 511)][::-1]
TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"]


def bars(shared: Api, symbol: str, query: str = "") -> list[dict[str, Any]]:
    candles: list[dict[str, Any]] = shared.ask(f"/api/market/{symbol}?{query}").json()["ohlcv"]
    return candles


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    """LONG has more hours than are ever shown."""
    make_instrument("LONG")
    put_candles("LONG", "1h", HOURS)
    put_quote("LONG")
    for symbol in ("BARE", "EXACT", "MORE", "SILENT"):
        make_instrument(symbol)


def test_body_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    response = shared.ask("/api/market/LONG")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    body = response.json()
    assert set(body) == {"symbol", "timeframe", "ohlcv", "quote"}
    assert (body["symbol"], body["timeframe"]) == ("LONG", "1h")
    assert all(set(c) == {"time", "open", "high", "low", "close", "volume"} for c in body["ohlcv"])
    assert set(body["quote"]) == {"bid", "ask", "spread", "timestamp"}


def test_quote_is_that_of_the_quote_path(shared: Api) -> None:
    put_quote("LONG", 1.0841, 1.08424)

    nested = shared.ask("/api/market/LONG").json()["quote"]

    assert MILLISECONDS.fullmatch(nested["timestamp"])
    assert {"symbol": "LONG", **nested} == shared.ask("/api/market/LONG/quote").json()


def test_candle_is_numbers_and_a_time(shared: Api) -> None:
    candle = bars(shared, "LONG", "bars=1")[0]

    assert SECONDS.fullmatch(candle.pop("time"))
    assert all(type(value) in (int, float) for value in candle.values())


def test_candle_is_told_as_it_was_kept(clock: Traveller, shared: Api) -> None:
    put_candles("EXACT", "1h", [NOON_MS - HOUR_MS], price=1.08)
    put_quote("EXACT")

    prices = {"open": 1.0801, "high": 1.0803, "low": 1.08, "close": 1.0802}
    assert bars(shared, "EXACT") == [{"time": "2026-11-18T11:00:00Z", **prices, "volume": 10}]


@pytest.mark.parametrize(
    ("query", "count"), [("", 100), ("bars=1", 1), ("bars=499", 499), ("bars=500", 500), ("bars=007", 7)]
)
def test_bars_is_the_number_of_the_latest_candles(
    clock: Traveller, shared: Api, query: str, count: int
) -> None:
    candles = bars(shared, "LONG", query)

    assert len(candles) == count
    assert candles[-1]["time"] == "2026-11-18T11:00:00Z"


def test_fewer_candles_than_asked_for_are_all_there_are(shared: Api) -> None:
    put_candles("MORE", "1h", HOURS[-3:])
    put_quote("MORE")

    assert len(bars(shared, "MORE", "bars=500")) == 3


def test_instrument_without_candles_answers_none_of_them(shared: Api) -> None:
    put_quote("BARE")

    response = shared.ask("/api/market/BARE")

    assert response.json()["ohlcv"] == []
    assert "X-Last-Closed" not in response.headers


def test_candles_are_ascending(shared: Api) -> None:
    times = [candle["time"] for candle in bars(shared, "LONG", "bars=500")]

    assert times == sorted(set(times))


@pytest.mark.parametrize("timeframe", TIMEFRAMES)
def test_each_timeframe_names_itself(shared: Api, timeframe: str) -> None:
    assert shared.ask(f"/api/market/LONG?timeframe={timeframe}").json()["timeframe"] == timeframe


@pytest.mark.parametrize("timeframe", ["1H", "2h", "60", "1M", "", "1h,4h"])
def test_other_timeframes_are_refused_with_the_allowed_ones(shared: Api, timeframe: str) -> None:
    response = shared.ask("/api/market/LONG", params={"timeframe": timeframe})

    refusal(response, 400, "invalid_timeframe", field="timeframe", allowed=TIMEFRAMES)


@pytest.mark.parametrize("count", ["0", "501", "99999999999999999999"])
def test_bars_out_of_range_are_refused_with_the_most(shared: Api, count: str) -> None:
    refusal(
        shared.ask(f"/api/market/LONG?bars={count}"), 400, "parameter_out_of_range", field="bars", max=500
    )


@pytest.mark.parametrize("symbol", ["long", "Long"])
def test_case_of_the_symbol_does_not_matter(shared: Api, symbol: str) -> None:
    assert shared.ask(f"/api/market/{symbol}").json()["symbol"] == "LONG"


def test_unknown_symbol_is_told_before_a_bad_parameter(shared: Api) -> None:
    refusal(shared.ask("/api/market/NOSUCH?bars=0"), 404, "symbol_not_found", field="symbol")


def test_never_quoted_is_503_though_there_are_candles(shared: Api) -> None:
    put_candles("SILENT", "1h", HOURS[-3:])

    refusal(shared.ask("/api/market/SILENT"), 503, "quote_unavailable")
