"""The minutes of a venue's history: what it is asked for over a real socket, and what its answers become."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from httpx2 import AsyncClient
from msgspec.structs import replace

from core.http import HttpFailed, open_client
from core.times import MINUTE_MS
from market.engine.venues import binance, kraken, oanda
from market.engine.venues.venue_history import (
    LONGEST_MS,
    MAX_BYTES,
    MinutesRequest,
    VenueAnswer,
    fetch,
    sound_minutes,
    whole_minutes,
)
from market.prices.candles import PriceBar
from tests.local_http import Request

from .fakes.http_venue import Answer, HttpVenue, Reply, says

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


def kraken_rows(*rows: list[Any]) -> dict[str, Any]:
    return {"error": [], "result": {"XXBTZUSD": rows}}


def kraken_minutes(answer: Any = KRAKEN, *, end_ms: int = END_MS, counted: bool = False) -> list[PriceBar]:
    bars = kraken.read_bars(json.dumps(answer).encode(), end_ms, counted=counted)
    return sound_minutes(bars, START_MS, end_ms)[0]


def kline(opened_ms: int = START_MS, *, high: str = "0.80000000") -> list[Any]:
    """The example of Binance's documentation, with prices of one size."""
    prices = ["0.01634790", high, "0.01575800", "0.01577100"]
    ended_ms = opened_ms + MINUTE_MS - 1
    return [opened_ms, *prices, "148976.11427815", ended_ms, "2434.19055334", 308, "1756.8", "28.4", "0"]


def binance_minutes(answer: Any, *, sent_ms: int | None = END_MS, counted: bool = False) -> list[PriceBar]:
    bars = binance.read_klines(VenueAnswer(json.dumps(answer).encode(), sent_ms), counted=counted)
    return sound_minutes(bars, START_MS, END_MS)[0]


def oanda_bar(time: str = "2023-07-06T19:20:00.000000000Z", **fields: Any) -> dict[str, Any]:
    bid = {"o": "1.09940", "h": "1.09960", "l": "1.09930", "c": "1.09951"}
    ask = {"o": "1.09949", "h": "1.09970", "l": "1.09939", "c": "1.09960"}
    return {"complete": True, "volume": 173, "time": time, "bid": bid, "ask": ask} | fields


def oanda_minutes(*bars: dict[str, Any], price: str = "bid", counted: bool = True) -> list[PriceBar]:
    body = {"instrument": "EUR_USD", "granularity": "M1", "candles": bars}
    minutes = oanda.read_bars(json.dumps(body).encode(), price, counted=counted)
    return sound_minutes(minutes, START_MS, END_MS)[0]


def test_kraken_bars_become_minutes_without_the_last_which_still_forms() -> None:
    assert kraken_minutes() == [FIRST, SECOND]
    assert kraken_minutes(end_ms=START_MS + MINUTE_MS) == [FIRST]


def test_binance_klines_become_minutes_without_what_makes_no_sense() -> None:
    (minute,) = binance_minutes([kline(), kline(START_MS + MINUTE_MS, high="nan")])
    assert minute == PriceBar(START_MS, 0.0163479, 0.8, 0.015758, 0.015771, 148976.11427815, 0.8, 0.015758)


@pytest.mark.parametrize(("sent_ms", "kept"), [(END_MS - 1, 2), (END_MS, 3), (None, 3)])
def test_binance_minute_that_runs_by_its_own_clock_is_left_out(sent_ms: int | None, kept: int) -> None:
    klines = [kline(START_MS + number * MINUTE_MS) for number in range(4)]
    assert len(binance_minutes(klines, sent_ms=sent_ms)) == kept


def test_oanda_candles_are_of_the_price_of_live_ones_with_the_extremes_of_the_ask() -> None:
    mid = {"o": "1.09945", "h": "1.09965", "l": "1.09935", "c": "1.09956"}
    asks = 1.0997, 1.09939
    assert oanda_minutes(oanda_bar()) == [PriceBar(START_MS, 1.0994, 1.0996, 1.0993, 1.09951, 173, *asks)]
    assert oanda_minutes(oanda_bar(mid=mid), price="mid") == [
        PriceBar(START_MS, 1.09945, 1.09965, 1.09935, 1.09956, 173, *asks)
    ]
    with pytest.raises(HttpFailed):
        oanda_minutes(oanda_bar(), price="mid")


def test_oanda_candle_that_is_not_complete_or_of_no_whole_minute_is_left_out() -> None:
    assert oanda_minutes(oanda_bar(complete=False), oanda_bar("2023-07-06T19:20:00.001000000Z")) == []


def test_volume_is_the_number_of_trades_where_ticks_are_counted_and_else_what_was_traded() -> None:
    assert [minute.volume for minute in kraken_minutes(counted=True)] == [23, 18]
    assert [minute.volume for minute in binance_minutes([kline()], counted=True)] == [308]
    assert [minute.volume for minute in oanda_minutes(oanda_bar(), counted=False)] == [0]


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (kraken_minutes, {"error": ["EQuery:Unknown asset pair"]}),
        (kraken_minutes, {"error": [], "result": {"last": 1}}),
        (kraken_minutes, {"error": []}),
        (kraken_minutes, {"error": [], "result": {"A": [], "B": []}}),
        (kraken_minutes, {"result": KRAKEN["result"]}),
        (kraken_minutes, kraken_rows([1688671200, "abc", "1", "1", "1", "1", "1", 1])),
        (kraken_minutes, kraken_rows([1688671200, "1"])),
        (kraken_minutes, []),
        (binance_minutes, {"code": -1121, "msg": "Invalid symbol."}),
        (binance_minutes, [[START_MS, "1"]]),
        (binance_minutes, [kline(high="x")]),
        (binance_minutes, 7),
        (oanda_minutes, oanda_bar(ask=None)),
        (oanda_minutes, oanda_bar(time="yesterday")),
        (oanda_minutes, oanda_bar(time="2023-07-06T19:20:00")),
        (oanda_minutes, oanda_bar(volume="many")),
    ],
)
def test_answer_that_is_none_is_a_failure(read: Callable[[Any], list[PriceBar]], answer: Any) -> None:
    with pytest.raises(HttpFailed):
        read(answer)


def test_kraken_has_old_names_of_coins_there() -> None:
    pairs = {"BTC/USD": "XBTUSD", "ETH/BTC": "ETHXBT", "DOGE/EUR": "XDGEUR", "EUR/USD": "EURUSD"}
    assert {pair: kraken.rest_pair(pair) for pair in pairs} == pairs


BAR = PriceBar(START_MS, 1.2, 1.4, 1.1, 1.3, 7.0, ask_high=1.41, ask_low=1.11)


def kept(*bars: PriceBar) -> list[int]:
    minutes, refused = sound_minutes(bars, START_MS, END_MS)
    assert refused + len(minutes) == len(bars)
    return [minute.opened_ms for minute in minutes]


@pytest.mark.parametrize(
    "fault",
    [
        *({"low": low} for low in (1.25, 1.35, 0.0, -1.0, nan)),
        *({"high": 1.25}, {"high": 1.15}, {"high": nan}, {"high": inf, "ask_high": inf}),
        *({"open": nan}, {"close": nan}),
        *({"ask_high": high} for high in (nan, 1.39, 1e10)),
        *({"ask_low": low} for low in (1.09, 1.42, nan)),
        *({"volume": volume} for volume in (nan, inf, -1.0, 1e12)),
    ],
    ids=str,
)
def test_bar_that_no_market_makes_is_left_out_and_counted(fault: dict[str, float]) -> None:
    assert kept(BAR) == [START_MS]
    assert kept(replace(BAR, **fault)) == []


@pytest.mark.parametrize(
    "opened_ms",
    [START_MS + 1, START_MS - MINUTE_MS, END_MS + MINUTE_MS, START_MS + MINUTE_MS // 2, 0, -MINUTE_MS],
)
def test_bar_of_another_time_is_left_out_and_counted(opened_ms: int) -> None:
    assert kept(BAR.opened_at(opened_ms)) == []


def test_second_bar_of_a_minute_and_one_out_of_order_are_left_out_and_a_running_one_is_no_fault() -> None:
    assert kept(BAR, BAR) == [START_MS]
    assert kept(BAR.opened_at(START_MS + MINUTE_MS), BAR) == [START_MS + MINUTE_MS]
    assert sound_minutes([BAR.opened_at(END_MS)], START_MS, END_MS) == ([], 0)


def test_minutes_asked_for_are_whole_and_ended_and_of_a_long_gap_the_last_three_days() -> None:
    assert whole_minutes(START_MS + 1, END_MS + 59_999) == (START_MS + MINUTE_MS, END_MS)
    assert whole_minutes(0, END_MS) == (END_MS - LONGEST_MS, END_MS)


async def klines(request: Request, reply: Reply) -> None:
    """Every minute that was asked for, and a bar beyond."""
    first_ms, last_ms = int(request.query["startTime"]), int(request.query["endTime"])
    rows = [
        [opened_ms, "1.1", "1.3", "1.0", "1.2", "5", opened_ms + MINUTE_MS - 1, "6", 7]
        for opened_ms in range(first_ms, last_ms + 2, MINUTE_MS)
    ]
    await reply.whole(json.dumps(rows).encode())


async def asked(answer: Answer) -> bytes:
    async with HttpVenue(answer) as venue, open_client() as client:
        return (await fetch(client, f"{venue.url}/bars", {})).body


def wanted(client: AsyncClient, url: str, name: str, end_ms: int) -> MinutesRequest:
    return MinutesRequest(client, url, name, *whole_minutes(START_MS, end_ms), counted=False)


async def test_binance_is_asked_page_by_page_for_the_minutes_between_of_three_days_at_most() -> None:
    async with HttpVenue(klines) as venue, open_client() as client:
        soon_ms, late_ms = START_MS + 2 * MINUTE_MS, START_MS + 2 * LONGEST_MS
        few = await binance.binance_history(wanted(client, venue.url, "BTCUSDT", soon_ms))
        (request,) = venue.requests
        many = await binance.binance_history(wanted(client, venue.url, "BTCUSDT", late_ms))

    times = {"startTime": "1688671200000", "endTime": "1688671319999"}
    assert request.path == "/api/v3/klines"
    assert request.query == {"symbol": "BTCUSDT", "interval": "1m", "limit": "1000", **times}
    assert len(venue.requests) == 1 + 5
    for minutes, since_ms, end_ms in ((few, START_MS, soon_ms), (many, late_ms - LONGEST_MS, late_ms)):
        sound, _ = sound_minutes(minutes, since_ms, end_ms)
        assert [bar.opened_ms for bar in sound] == list(range(since_ms, end_ms, MINUTE_MS))


async def test_kraken_is_asked_for_what_came_since() -> None:
    nothing = b'{"error":[],"result":{"XXBTZUSD":[],"last":1}}'
    async with HttpVenue(says(nothing)) as venue, open_client() as client:
        await kraken.kraken_history(wanted(client, venue.url, "BTC/USD", START_MS + MINUTE_MS))

    assert venue.requests[0].path == "/0/public/OHLC"
    assert venue.requests[0].query == {"pair": "XBTUSD", "interval": "1", "since": "1688671199"}
    assert venue.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(("price", "asked_for"), [("bid", "BA"), ("mid", "MA")])
async def test_oanda_is_asked_for_the_price_of_the_candles_and_the_ask(price: str, asked_for: str) -> None:
    async with HttpVenue(says(b'{"candles":[]}')) as venue, open_client() as client:
        end_ms = START_MS + MINUTE_MS
        await oanda.oanda_history(wanted(client, venue.url, "EUR_USD", end_ms), price)

    times = {"from": "2023-07-06T19:20:00Z", "to": "2023-07-06T19:21:00Z"}
    assert venue.requests[0].path == "/v3/instruments/EUR_USD/candles"
    assert venue.requests[0].query == {"price": asked_for, "granularity": "M1", **times}


@pytest.mark.parametrize(
    ("date", "sent_ms"),
    [
        ("Thu, 06 Jul 2023 19:20:00 GMT", START_MS),
        ("", None),
        ("soon", None),
        ("Thu, 99 Jul 2023 19:20:00 GMT", None),
    ],
)
async def test_answer_comes_with_the_time_of_the_venue_if_it_has_one(date: str, sent_ms: int | None) -> None:
    async with HttpVenue(says(b"[]", Date=date)) as venue, open_client() as client:
        assert await fetch(client, venue.url, {}) == (b"[]", sent_ms)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        ("400 Bad Request", b'{"code":-1121,"msg":"Invalid symbol."}', "the answer was 400: Invalid symbol"),
        ("403 Forbidden", b'{"errorMessage":"No\\n\\nway"}', "the answer was 403: No way"),
        ("429 Too Many Requests", b"<html>", "the answer was 429"),
        ("500 Internal Server Error", b"[1]", "the answer was 500"),
        ("302 Found", b"", "the answer was 302"),
        ("204 No Content", b"", "the answer was 204"),
    ],
)
async def test_bad_status_is_a_failure_in_a_sentence(status: str, body: bytes, sentence: str) -> None:
    with pytest.raises(HttpFailed) as failed:
        await asked(says(body, status, Location="http://127.0.0.1:9/"))

    assert str(failed.value) == sentence


async def pour(_: Request, reply: Reply) -> None:
    await reply.begin()
    while True:
        await reply.chunk(b" " * 65_536)


async def cut(_: Request, reply: Reply) -> None:
    await reply.begin()
    await reply.chunk(b"[")
    reply.cut()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (says(gzip.compress(b"[]"), Content_Encoding="gzip"), r"a way that was not asked for \(gzip\)"),
        (pour, f"{MAX_BYTES:,}"),
        (cut, "connection failed"),
    ],
    ids=["packed", "without end", "torn"],
)
async def test_answer_that_cannot_be_read_is_a_failure(answer: Answer, complaint: str) -> None:
    with pytest.raises(HttpFailed, match=complaint):
        await asked(answer)


async def test_venue_that_is_away_or_has_no_address_is_a_failure() -> None:
    async with HttpVenue(says(b"")) as venue:
        pass
    async with open_client() as client:
        with pytest.raises(HttpFailed, match="ConnectError"):
            await fetch(client, venue.url, {})
        with pytest.raises(HttpFailed, match="InvalidURL"):
            await fetch(client, "http://venue:port/", {})


async def test_venue_that_takes_too_long_is_a_failure() -> None:
    async def drip(_: Request, reply: Reply) -> None:
        await reply.begin()
        while True:
            await reply.chunk(b" ")
            await asyncio.sleep(0.01)

    async with HttpVenue(drip) as venue, open_client() as client:
        with pytest.raises(HttpFailed, match="within 0.1 s"):
            await fetch(client, venue.url, {}, timeout_s=0.1)
