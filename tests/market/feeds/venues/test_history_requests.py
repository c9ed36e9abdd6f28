"""What a venue is asked for, over a real socket, and what becomes of bad answers."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from httpx2 import AsyncClient

from core.http import HttpFailed, open_client
from core.times import MINUTE_MS
from market.engine.feeds.venues.binance_rest import binance_history
from market.engine.feeds.venues.kraken import kraken_history
from market.engine.feeds.venues.oanda_rest import oanda_history
from market.engine.feeds.venues.venue_history import (
    LONGEST_MS,
    MAX_BYTES,
    MinutesRequest,
    fetch,
    sound_minutes,
    whole_minutes,
)
from tests.local_http import Request

from .fakes.http_venue import Answer, HttpVenue, Reply

# 2023-07-06T19:20:00Z.
START_MS = 1_688_671_200_000


def says(body: bytes, status: str = "200 OK", **headers: str) -> Answer:
    async def answer(_: Request, reply: Reply) -> None:
        await reply.whole(body, status, **headers)

    return answer


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


async def test_binance_is_asked_for_the_minutes_between() -> None:
    async with HttpVenue(klines) as venue, open_client() as client:
        end_ms = START_MS + 2 * MINUTE_MS
        minutes = await binance_history(wanted(client, venue.url, "BTCUSDT", end_ms))

    assert (venue.requests[0].path, venue.requests[0].query) == (
        "/api/v3/klines",
        {
            "symbol": "BTCUSDT",
            "interval": "1m",
            "limit": "1000",
            "startTime": "1688671200000",
            "endTime": "1688671319999",
        },
    )
    minutes, _ = sound_minutes(minutes, START_MS, end_ms)
    assert [bar.opened_ms for bar in minutes] == [START_MS, START_MS + MINUTE_MS]


async def test_binance_is_asked_page_by_page_for_three_days_at_most() -> None:
    async with HttpVenue(klines) as venue, open_client() as client:
        end_ms = START_MS + 2 * LONGEST_MS
        minutes = await binance_history(wanted(client, venue.url, "BTCUSDT", end_ms))

    assert len(venue.requests) == 5
    minutes, _ = sound_minutes(minutes, end_ms - LONGEST_MS, end_ms)
    assert [bar.opened_ms for bar in minutes] == list(range(end_ms - LONGEST_MS, end_ms, MINUTE_MS))


async def test_kraken_is_asked_for_what_came_since() -> None:
    async with (
        HttpVenue(says(b'{"error":[],"result":{"XXBTZUSD":[],"last":1}}')) as venue,
        open_client() as client,
    ):
        await kraken_history(wanted(client, venue.url, "BTC/USD", START_MS + MINUTE_MS))

    assert (venue.requests[0].path, venue.requests[0].query) == (
        "/0/public/OHLC",
        {"pair": "XBTUSD", "interval": "1", "since": "1688671199"},
    )


@pytest.mark.parametrize(("price", "asked_for"), [("bid", "BA"), ("mid", "MA")])
async def test_oanda_is_asked_for_the_price_of_the_candles_and_the_ask(price: str, asked_for: str) -> None:
    async with HttpVenue(says(b'{"candles":[]}')) as venue, open_client() as client:
        end_ms = START_MS + MINUTE_MS
        await oanda_history(wanted(client, venue.url, "EUR_USD", end_ms), price)

    assert (venue.requests[0].path, venue.requests[0].query) == (
        "/v3/instruments/EUR_USD/candles",
        {
            "price": asked_for,
            "granularity": "M1",
            "from": "2023-07-06T19:20:00Z",
            "to": "2023-07-06T19:21:00Z",
        },
    )


async def test_answer_comes_with_the_time_of_the_venue() -> None:
    async with HttpVenue(says(b"[]", Date="Thu, 06 Jul 2023 19:20:00 GMT")) as venue, open_client() as client:
        assert await fetch(client, venue.url, {}) == (b"[]", START_MS)


@pytest.mark.parametrize("date", ["", "soon", "Thu, 99 Jul 2023 19:20:00 GMT"])
async def test_answer_without_a_time_is_an_answer(date: str) -> None:
    async with HttpVenue(says(b"[]", Date=date)) as venue, open_client() as client:
        assert (await fetch(client, venue.url, {})).sent_ms is None


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


async def test_answer_that_is_packed_is_refused_unread() -> None:
    with pytest.raises(HttpFailed, match=r"packed in a way nobody asked for \(gzip\)"):
        await asked(says(gzip.compress(b"[]"), Content_Encoding="gzip"))


async def test_answer_without_end_is_a_failure() -> None:
    async def pour(_: Request, reply: Reply) -> None:
        await reply.begin()
        while True:
            await reply.chunk(b" " * 65_536)

    with pytest.raises(HttpFailed, match=f"{MAX_BYTES:,}"):
        await asked(pour)


async def test_connection_that_breaks_is_a_failure() -> None:
    async def cut(_: Request, reply: Reply) -> None:
        await reply.begin()
        await reply.chunk(b"[")
        reply.cut()

    with pytest.raises(HttpFailed, match="connection failed"):
        await asked(cut)


async def test_venue_that_is_away_is_a_failure() -> None:
    async with HttpVenue(says(b"")) as venue:
        pass

    async with open_client() as client:
        with pytest.raises(HttpFailed, match="ConnectError"):
            await fetch(client, venue.url, {})


async def test_address_that_is_none_is_a_failure() -> None:
    async with open_client() as client:
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


async def test_history_is_asked_for_without_compression() -> None:
    async with HttpVenue(says(b"[]")) as venue, open_client() as client:
        await fetch(client, venue.url, {})

    assert venue.requests[0].headers["accept-encoding"] == "identity"
