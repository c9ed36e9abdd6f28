"""Missed trades, as venues tell them one by one: what is asked for, and what becomes of the answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from core.http import HttpFailed, open_client
from market.engine.venues.binance import binance_trades
from market.engine.venues.kraken import kraken_trades
from market.engine.venues.venue_history import (
    MOST_REQUESTS,
    TRADES_PER_REQUEST,
    TooManyTrades,
    TradesRequest,
    VenueTrade,
    sound_trades,
)
from tests.local_http import Request

from .fakes.http_venue import Answer, HttpVenue, Reply, says

SINCE_MS, NUMBER = 1_688_669_580_000, 61_044_952
Ask = Callable[[TradesRequest], Awaitable[list[VenueTrade]]]


def binance_page(first: int, count: int) -> list[dict[str, Any]]:
    """Each second one was sold."""
    return [
        {
            "a": number,
            "p": "30243.4",
            "q": "0.5",
            "f": 1,
            "l": 1,
            "T": SINCE_MS + number,
            "m": number % 2 == 0,
        }
        for number in range(first, first + count)
    ]


def kraken_page(first: int, count: int) -> dict[str, Any]:
    rows = [
        ["30243.40000", "0.50000000", SINCE_MS / 1000 + number / 1000, "sb"[number % 2], "m", "", number]
        for number in range(first, first + count)
    ]
    return {"error": [], "result": {"XXBTZUSD": rows, "last": f"last {first + count}"}}


async def asked(ask: Ask, answer: Answer, known: int = 0) -> tuple[list[VenueTrade], list[Request]]:
    async with HttpVenue(answer) as venue, open_client() as client:
        name = "BTCUSDT" if ask is binance_trades else "BTC/USD"
        request = TradesRequest(client, venue.url, name, SINCE_MS, known)
        return sound_trades(await ask(request), request), venue.requests


@pytest.mark.parametrize(
    ("known", "begin"), [(0, {"startTime": str(SINCE_MS)}), (NUMBER, {"fromId": str(NUMBER + 1)})]
)
async def test_binance_is_asked_from_the_first_that_is_missing_until_a_page_is_not_full(
    known: int, begin: dict[str, str]
) -> None:
    pages = [binance_page(NUMBER + 1, TRADES_PER_REQUEST), binance_page(NUMBER + 1_001, 2)]

    async def answer(request: Request, reply: Reply) -> None:
        await reply.whole(json.dumps(pages.pop(0)).encode())

    trades, requests = await asked(binance_trades, answer, known)
    first = {"symbol": "BTCUSDT", "limit": str(TRADES_PER_REQUEST)}
    assert [(each.path, each.query) for each in requests] == [
        ("/api/v3/aggTrades", first | begin),
        ("/api/v3/aggTrades", first | {"fromId": str(NUMBER + 1_001)}),
    ]
    assert [trade.number for trade in trades] == list(range(NUMBER + 1, NUMBER + 1_003))
    assert trades[0] == VenueTrade(NUMBER + 1, SINCE_MS + NUMBER + 1, 30_243.4, 0.5, 1)
    assert trades[1].side == -1


async def test_kraken_is_asked_since_the_last_of_a_page_until_one_is_not_full() -> None:
    pages = [kraken_page(7, TRADES_PER_REQUEST), kraken_page(1_007, 2)]

    async def answer(request: Request, reply: Reply) -> None:
        await reply.whole(json.dumps(pages.pop(0)).encode())

    trades, requests = await asked(kraken_trades, answer, known=8)
    first = {"pair": "XBTUSD", "count": str(TRADES_PER_REQUEST)}
    assert [(each.path, each.query) for each in requests] == [
        ("/0/public/Trades", first | {"since": str(SINCE_MS * 1_000_000)}),
        ("/0/public/Trades", first | {"since": "last 1007"}),
    ]
    assert [trade.number for trade in trades] == list(range(9, 1_009))
    assert trades[0] == VenueTrade(9, SINCE_MS + 9, 30_243.4, 0.5, 1)
    assert trades[1].side == -1


@pytest.mark.parametrize("ask", [binance_trades, kraken_trades], ids=["Binance", "Kraken"])
async def test_who_missed_too_many_has_none_of_them(ask: Ask) -> None:
    page = binance_page if ask is binance_trades else kraken_page
    full = json.dumps(page(1, TRADES_PER_REQUEST)).encode()
    async with HttpVenue(says(full)) as venue, open_client() as client:
        with pytest.raises(TooManyTrades):
            await ask(TradesRequest(client, venue.url, "BTC/USD", SINCE_MS, 0))
    assert len(venue.requests) == MOST_REQUESTS


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"error":["EGeneral:Too many requests"]}', b'{"error":[],"result":{"last":"1"}}']
)
async def test_kraken_s_refusal_is_a_failure(body: bytes) -> None:
    with pytest.raises(HttpFailed):
        await asked(kraken_trades, says(body))


def test_trades_are_in_the_order_of_their_numbers_and_none_comes_twice_or_makes_no_sense() -> None:
    good = VenueTrade(3, SINCE_MS, 1.0, 2.0, 1)
    old, known = good._replace(number=4, time_ms=SINCE_MS - 1), good._replace(number=2)
    bad = [good._replace(number=9, price=price) for price in (0.0, -1.0, float("nan"), 1e10)]
    bad += [good._replace(number=9, size=size) for size in (0.0, float("inf"))]
    later = good._replace(number=5)
    client: Any = None
    request = TradesRequest(client, "", "", SINCE_MS, 2)
    assert sound_trades([later, *bad, good, known, old, later], request) == [good, later]
