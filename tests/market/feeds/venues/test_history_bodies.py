"""What the venues' own answers become; the bodies are theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.http import HttpFailed
from core.times import MINUTE_MS
from market.engine.feeds.venues import binance_rest, kraken, oanda_rest
from market.engine.feeds.venues.venue_history import VenueAnswer, sound_minutes
from market.prices.candles import PriceBar

# 2023-07-06T19:20:00Z, where the example of Kraken's documentation begins.
START_MS = 1_688_671_200_000
END_MS = START_MS + 3 * MINUTE_MS
KRAKEN = {
    "error": [],
    "result": {
        "XXBTZUSD": [
            [1688671200, "30306.1", "30306.2", "30305.7", "30305.7", "30306.1", "3.39243896", 23],
            [1688671260, "30304.5", "30304.5", "30300.0", "30300.0", "30300.0", "4.42996871", 18],
            [1688671320, "30300.3", "30300.4", "30291.4", "30291.4", "30294.7", "2.13024789", 25],
        ],
        "last": 1688671260,
    },
}
FIRST, SECOND = (
    PriceBar(START_MS, 30306.1, 30306.2, 30305.7, 30305.7, 3.39243896, 30306.2, 30305.7),
    PriceBar(START_MS + MINUTE_MS, 30304.5, 30304.5, 30300.0, 30300.0, 4.42996871, 30304.5, 30300.0),
)


def kraken_minutes(answer: Any = KRAKEN, *, end_ms: int = END_MS, counted: bool = False) -> list[PriceBar]:
    bars = kraken.read_bars(json.dumps(answer).encode(), end_ms, counted=counted)
    return sound_minutes(bars, START_MS, end_ms)[0]


def kline(opened_ms: int = START_MS, *, high: str = "0.80000000") -> list[Any]:
    """The example of Binance's documentation, with prices of one size."""
    prices = ["0.01634790", high, "0.01575800", "0.01577100"]
    ended_ms = opened_ms + MINUTE_MS - 1
    return [opened_ms, *prices, "148976.11427815", ended_ms, "2434.19055334", 308, "1756.8", "28.4", "0"]


def binance_minutes(answer: Any, *, sent_ms: int | None = END_MS, counted: bool = False) -> list[PriceBar]:
    bars = binance_rest.read_klines(VenueAnswer(json.dumps(answer).encode(), sent_ms), counted=counted)
    return sound_minutes(bars, START_MS, END_MS)[0]


def oanda_bar(time: str = "2023-07-06T19:20:00.000000000Z", **fields: Any) -> dict[str, Any]:
    bid = {"o": "1.09940", "h": "1.09960", "l": "1.09930", "c": "1.09951"}
    ask = {"o": "1.09949", "h": "1.09970", "l": "1.09939", "c": "1.09960"}
    return {"complete": True, "volume": 173, "time": time, "bid": bid, "ask": ask} | fields


def oanda_minutes(*bars: dict[str, Any], price: str = "bid", counted: bool = True) -> list[PriceBar]:
    body = {"instrument": "EUR_USD", "granularity": "M1", "candles": bars}
    minutes = oanda_rest.read_bars(json.dumps(body).encode(), price, counted=counted)
    return sound_minutes(minutes, START_MS, END_MS)[0]


def test_kraken_bars_become_minutes_without_the_last_which_still_forms() -> None:
    assert kraken_minutes() == [FIRST, SECOND]


def test_kraken_volume_is_the_number_of_trades_where_ticks_are_counted() -> None:
    assert [minute.volume for minute in kraken_minutes(counted=True)] == [23, 18]


def test_kraken_bars_after_the_end_are_left_out() -> None:
    assert kraken_minutes(end_ms=START_MS + MINUTE_MS) == [FIRST]


def test_kraken_error_is_a_failure_that_repeats_it() -> None:
    with pytest.raises(HttpFailed, match="Unknown asset pair"):
        kraken_minutes({"error": ["EQuery:Unknown asset pair"]})


@pytest.mark.parametrize(
    "answer",
    [
        {"error": [], "result": {"last": 1}},
        {"error": []},
        {"error": [], "result": {"A": [], "B": []}},
        {"result": KRAKEN["result"]},
        {"error": [], "result": {"XXBTZUSD": [[1688671200, "abc", "1", "1", "1", "1", "1", 1]]}},
        {"error": [], "result": {"XXBTZUSD": [[1688671200, "1"]]}},
        [],
    ],
)
def test_kraken_answer_that_is_none_is_a_failure(answer: Any) -> None:
    with pytest.raises(HttpFailed):
        kraken_minutes(answer)


@pytest.mark.parametrize(
    ("pair", "name"),
    [("BTC/USD", "XBTUSD"), ("ETH/BTC", "ETHXBT"), ("DOGE/EUR", "XDGEUR"), ("EUR/USD", "EURUSD")],
)
def test_kraken_has_old_names_of_coins_there(pair: str, name: str) -> None:
    assert kraken.rest_pair(pair) == name


def test_binance_klines_become_minutes() -> None:
    assert binance_minutes([kline()]) == [
        PriceBar(START_MS, 0.0163479, 0.8, 0.015758, 0.015771, 148976.11427815, 0.8, 0.015758)
    ]


def test_binance_volume_is_the_number_of_trades_where_ticks_are_counted() -> None:
    assert binance_minutes([kline()], counted=True)[0].volume == 308


def test_binance_minute_that_runs_by_its_own_clock_is_left_out() -> None:
    last_ms = END_MS - MINUTE_MS

    assert [bar.opened_ms for bar in binance_minutes([kline(), kline(last_ms)], sent_ms=END_MS - 1)] == [
        START_MS
    ]


def test_binance_without_a_clock_is_judged_by_ours() -> None:
    klines = [kline(START_MS + number * MINUTE_MS) for number in range(4)]

    assert len(binance_minutes(klines, sent_ms=None)) == 3


def test_binance_bar_that_makes_no_sense_leaves_the_others() -> None:
    bad, good = kline(high="nan"), kline(START_MS + MINUTE_MS)

    assert [bar.opened_ms for bar in binance_minutes([bad, good])] == [START_MS + MINUTE_MS]


@pytest.mark.parametrize(
    "answer", [{"code": -1121, "msg": "Invalid symbol."}, [[START_MS, "1"]], [kline(high="x")], 7]
)
def test_binance_answer_that_is_none_is_a_failure(answer: Any) -> None:
    with pytest.raises(HttpFailed):
        binance_minutes(answer)


def test_oanda_candles_become_minutes_of_the_bid_with_the_extremes_of_the_ask() -> None:
    assert oanda_minutes(oanda_bar()) == [
        PriceBar(START_MS, 1.0994, 1.0996, 1.0993, 1.09951, 173, ask_high=1.0997, ask_low=1.09939)
    ]


def test_oanda_candles_are_of_the_mid_where_live_ones_are() -> None:
    mid = {"o": "1.09945", "h": "1.09965", "l": "1.09935", "c": "1.09956"}

    assert oanda_minutes(oanda_bar(mid=mid), price="mid") == [
        PriceBar(START_MS, 1.09945, 1.09965, 1.09935, 1.09956, 173, ask_high=1.0997, ask_low=1.09939)
    ]
    with pytest.raises(HttpFailed):
        oanda_minutes(oanda_bar(), price="mid")


def test_oanda_number_of_prices_is_no_traded_volume() -> None:
    assert [minute.volume for minute in oanda_minutes(oanda_bar(), counted=False)] == [0]


def test_oanda_candle_that_is_not_complete_is_left_out() -> None:
    assert oanda_minutes(oanda_bar(complete=False)) == []


def test_oanda_times_in_nanoseconds_are_no_whole_minutes() -> None:
    assert oanda_minutes(oanda_bar("2023-07-06T19:20:00.001000000Z")) == []


@pytest.mark.parametrize(
    "bar",
    [
        oanda_bar(ask=None),
        oanda_bar(time="yesterday"),
        oanda_bar(time="2023-07-06T19:20:00"),
        oanda_bar(volume="many"),
    ],
)
def test_oanda_answer_that_is_none_is_a_failure(bar: dict[str, Any]) -> None:
    with pytest.raises(HttpFailed):
        oanda_minutes(bar)
