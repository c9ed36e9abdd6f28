"""GET /api/market/{symbol}: candles and the quote, the candle that forms, and when it is closed."""

from __future__ import annotations

from typing import Any

import pytest
from time_machine import Traveller

from core.clock import now_ms
from instruments.catalogue import catalogue
from market import runtime as market
from market.prices.records import Tick
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal, to_ms
from tests.factories import make_calendar, make_instrument, put_candles, put_quote

pytestmark = pytest.mark.services

HOUR_MS = 3_600_000
NOON_MS = to_ms("2026-11-18 12:00")
HOURS = [NOON_MS - number * HOUR_MS for number in range(1, 511)][::-1]


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    """One for each test, so that none sees the candles of another; LONG has more than are ever shown."""
    for symbol in ("ALIGNED", "COUNTED", "FLAT", "ENDED", "REQUOTED", "LONG", "EXACT", "SILENT"):
        make_instrument(symbol)
    for symbol in ("EXTREMES", "SUMS"):
        make_instrument(symbol, volume_kind="traded")
    make_instrument("ROUND", digits=2)
    make_instrument("MORNING", calendar=make_calendar("morning", "Mon-Fri 09:30-11:45"))
    make_instrument(
        "SUNDAY", calendar=make_calendar("fx", "Sun 17:00-Fri 17:00", timezone="America/New_York")
    )
    put_candles("LONG", "1h", HOURS)
    put_quote("LONG")


def tick(symbol: str, bid: float, *, ask: float | None = None, volume: float = 1.0) -> None:
    """A tick now, through the door that a feed uses."""
    taken = Tick(symbol, bid, ask or bid, now_ms(), volume)
    assert market.engine.accept(taken, taken.time_ms) is None


def bars(shared: Api, symbol: str, query: str = "") -> list[dict[str, Any]]:
    candles: list[dict[str, Any]] = shared.ask(f"/api/market/{symbol}?{query}").json()["ohlcv"]
    return candles


def test_body_has_exactly_the_fields_of_the_specification_and_the_quote_of_its_own_path(shared: Api) -> None:
    put_quote("LONG", 1.0841, 1.08424)
    for symbol in ("LONG", "long"):
        response = shared.ask(f"/api/market/{symbol}")
        assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
        body = response.json()
        assert set(body) == {"symbol", "timeframe", "ohlcv", "quote"}
        assert (body["symbol"], body["timeframe"]) == ("LONG", "1h")
        quote = body["quote"]
        assert set(quote) == {"bid", "ask", "spread", "timestamp"}
        assert MILLISECONDS.fullmatch(quote["timestamp"])
        assert {"symbol": "LONG", **quote} == shared.ask("/api/market/LONG/quote").json()


def test_candle_is_told_as_it_was_kept_and_without_candles_there_are_none(
    clock: Traveller, shared: Api
) -> None:
    put_quote("EXACT")
    response = shared.ask("/api/market/EXACT")
    assert (response.json()["ohlcv"], "X-Last-Closed" in response.headers) == ([], False)
    put_candles("EXACT", "1h", [NOON_MS - HOUR_MS], price=1.08)
    (candle,) = bars(shared, "EXACT", "bars=500")
    prices = {"open": 1.0801, "high": 1.0803, "low": 1.08, "close": 1.0802}
    assert candle == {"time": "2026-11-18T11:00:00Z", **prices, "volume": 10}
    assert all(type(candle[name]) in (int, float) for name in (*prices, "volume"))


@pytest.mark.parametrize(
    ("query", "count"), [("", 100), ("bars=1", 1), ("bars=499", 499), ("bars=500", 500), ("bars=007", 7)]
)
def test_bars_is_the_number_of_the_latest_candles_in_ascending_order(
    clock: Traveller, shared: Api, query: str, count: int
) -> None:
    times = [candle["time"] for candle in bars(shared, "LONG", query)]
    assert (len(times), times[-1]) == (count, "2026-11-18T11:00:00Z")
    assert times == sorted(set(times))


def test_never_quoted_is_503_with_a_time_to_try_again_though_there_are_candles(shared: Api) -> None:
    put_candles("SILENT", "1h", HOURS[-3:])
    for path in ("/api/market/SILENT", "/api/market/SILENT/quote"):
        response = shared.ask(path)
        refusal(response, 503, "quote_unavailable")
        assert int(response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("timeframe", "opened"),
    [("1m", "13:37"), ("5m", "13:35"), ("15m", "13:30"), ("1h", "13:00"), ("4h", "12:00"), ("1d", "00:00")],
)
def test_candles_are_stamped_with_the_open_of_their_utc_interval(
    clock: Traveller, shared: Api, timeframe: str, opened: str
) -> None:
    clock.move_to("2026-11-18T13:37:42.250Z")
    market.engine.accept(Tick("ALIGNED", 1.1, 1.1, now_ms(), 1.0), now_ms())
    body = shared.ask(f"/api/market/ALIGNED?timeframe={timeframe}").json()
    assert (body["timeframe"], body["ohlcv"][-1]["time"]) == (timeframe, f"2026-11-18T{opened}:00Z")


@pytest.mark.parametrize(
    ("symbol", "query", "times"),
    [
        ("LAST1", "closed_only=true", ["10:00", "11:00"]),
        ("LAST2", "closed_only=false", ["10:00", "11:00", "12:00"]),
        ("LAST3", "closed_only=true&bars=1", ["11:00"]),
        ("LAST4", "bars=1", ["12:00"]),
        ("LAST5", "bars=2", ["11:00", "12:00"]),
    ],
)
def test_forming_candle_counts_among_the_bars_unless_left_out(
    clock: Traveller, shared: Api, symbol: str, query: str, times: list[str]
) -> None:
    make_instrument(symbol)
    put_candles(symbol, "1h", [NOON_MS - 2 * HOUR_MS, NOON_MS - HOUR_MS])
    tick(symbol, 1.1)
    response = shared.ask(f"/api/market/{symbol}?{query}")
    assert [candle["time"][11:16] for candle in response.json()["ohlcv"]] == times
    assert response.headers["X-Last-Closed"] == "2026-11-18T11:00:00Z"


def test_candle_has_the_first_highest_lowest_and_last_bid_and_the_sum_of_volumes(
    clock: Traveller, shared: Api
) -> None:
    for bid, volume in ((1.10, 2.0), (1.13, 0.5), (1.09, 1.0), (1.12, 4.0)):
        tick("EXTREMES", bid, ask=bid + 0.5, volume=volume)
        clock.shift(1)
    candle = bars(shared, "EXTREMES", "timeframe=1m")[-1]
    assert [candle[name] for name in ("open", "high", "low", "close")] == [1.10, 1.13, 1.09, 1.12]
    assert candle["volume"] == 7.5


def test_prices_are_rounded_to_the_digits_of_the_instrument(clock: Traveller, shared: Api) -> None:
    tick("ROUND", 2400.127)
    clock.shift(1)
    tick("ROUND", 2400.001)
    candle = bars(shared, "ROUND")[-1]
    assert [candle[name] for name in ("open", "high", "low", "close")] == [2400.13, 2400.13, 2400, 2400]


def test_volume_is_the_number_of_ticks_where_trades_are_not_known_and_shows_no_binary_noise(
    clock: Traveller, shared: Api
) -> None:
    for number in range(3):
        tick("COUNTED", 1.1 + number, volume=5.0)
        tick("SUMS", 1.1 + number, volume=0.1)
    assert [bars(shared, symbol)[-1]["volume"] for symbol in ("COUNTED", "SUMS")] == [3, 0.3]
    # Nothing is said to be closed while the first candle forms.
    response = shared.ask("/api/market/COUNTED?closed_only=true")
    assert (response.json()["ohlcv"], "X-Last-Closed" in response.headers) == ([], False)


def test_minute_without_ticks_is_flat_at_the_previous_close(clock: Traveller, shared: Api) -> None:
    history = market.prices.history(catalogue.get("FLAT"))
    tick("FLAT", 1.1)
    clock.shift(130)
    history.close_until(now_ms())
    history.fill(NOON_MS + 60_000)
    flat = bars(shared, "FLAT", "timeframe=1m&closed_only=true")[-1]
    prices = dict.fromkeys(("open", "high", "low", "close"), 1.1)
    assert flat == {"time": "2026-11-18T12:01:00Z", **prices, "volume": 0}


@pytest.mark.parametrize("timeframe", ["5m", "15m", "1h", "4h", "1d"])
def test_coarser_candle_is_the_aggregate_of_its_minutes(
    clock: Traveller, shared: Api, timeframe: str
) -> None:
    symbol = f"AGG{timeframe.upper()}"
    make_instrument(symbol)
    for bid in (1.10, 1.14, 1.08, 1.11):
        tick(symbol, bid)
        clock.shift(45)
    minutes, (candle,) = bars(shared, symbol, "timeframe=1m"), bars(shared, symbol, f"timeframe={timeframe}")
    assert len(minutes) == 3
    assert candle["open"] == minutes[0]["open"]
    assert candle["high"] == max(minute["high"] for minute in minutes)
    assert candle["low"] == min(minute["low"] for minute in minutes)
    assert candle["close"] == minutes[-1]["close"]
    assert candle["volume"] == sum(minute["volume"] for minute in minutes) == 4


def test_candle_is_closed_once_its_interval_has_ended(clock: Traveller, shared: Api) -> None:
    clock.move_to("2026-11-18T12:59:59.900Z")
    tick("ENDED", 1.1)
    assert bars(shared, "ENDED", "closed_only=true") == []
    clock.move_to("2026-11-18T13:00:01.900Z")
    market.engine.keep_time(now_ms())
    # Ticks of it may be under way.
    assert bars(shared, "ENDED", "closed_only=true") == []
    clock.move_to("2026-11-18T13:00:02Z")
    market.engine.keep_time(now_ms())
    response = shared.ask("/api/market/ENDED?closed_only=true")
    assert [candle["time"] for candle in response.json()["ohlcv"]] == ["2026-11-18T12:00:00Z"]
    assert response.headers["X-Last-Closed"] == "2026-11-18T12:00:00Z"


@pytest.mark.parametrize(
    ("timeframe", "opened"),
    [("1m", "11:44"), ("15m", "11:30"), ("1h", "11:00"), ("4h", "08:00"), ("1d", "00:00")],
)
def test_on_a_market_that_is_closed_for_the_day_all_candles_are_closed(
    clock: Traveller, shared: Api, timeframe: str, opened: str
) -> None:
    clock.move_to("2026-11-18T11:44:30Z")
    market.engine.accept(Tick("MORNING", 1.1, 1.1, now_ms(), 1.0), now_ms())
    clock.move_to("2026-11-18T11:45:02Z")
    market.engine.keep_time(now_ms())
    response = shared.ask(f"/api/market/MORNING?timeframe={timeframe}&closed_only=true")
    assert response.headers["X-Market-State"] == "closed"
    assert response.headers["X-Last-Closed"] == f"2026-11-18T{opened}:00Z"
    assert response.json()["ohlcv"][-1]["time"] == f"2026-11-18T{opened}:00Z"


def test_sunday_evening_is_a_short_daily_candle_of_its_own(clock: Traveller, shared: Api) -> None:
    for moment in ("2026-11-20T21:00:00Z", "2026-11-22T22:30:00Z", "2026-11-23T00:10:00Z"):
        clock.move_to(moment)
        tick("SUNDAY", 1.1)
    times = [candle["time"][:10] for candle in bars(shared, "SUNDAY", "timeframe=1d")]
    assert times == ["2026-11-20", "2026-11-22", "2026-11-23"]


def test_quote_behind_the_same_candles_is_the_newest(clock: Traveller, shared: Api) -> None:
    clock.move_to("2026-11-18T12:00:10Z")
    tick("REQUOTED", 1.1)
    asked = "/api/market/REQUOTED?timeframe=1h"
    before = [shared.ask(asked).json() for _ in range(2)]
    # A quote without a candle, as where a new series begins.
    market.prices.quotes.put(Tick("REQUOTED", 1.2, 1.2, now_ms(), 1.0), digits=5)
    after = shared.ask(asked).json()
    assert [each["quote"]["bid"] for each in (*before, after)] == [1.1, 1.1, 1.2]
    assert before[0]["ohlcv"] == after["ohlcv"]
