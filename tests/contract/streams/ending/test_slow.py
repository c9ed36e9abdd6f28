"""Clients that do not read: ended for themselves alone, or given the newest price only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accounts.open_streams.registry import open_streams
from market.streams import market_streams as streams
from tests.client import Server
from tests.contract.streams import on_daphne
from tests.contract.streams.client import MARKET, Frame
from tests.contract.streams.conftest import Open
from tests.contract.streams.ticker import Ticker
from tests.factories import make_instrument
from tests.patience import PATIENCE_S, until
from tests.serving.websocket.wires import CLOSE, TEXT, RawClient

# Above the 2,000 that may wait and what the kernel holds on both sides.
MANY = 8_000

# What daphne never sees is not waited for as long as the slowest machine needs.
SEEN_WITHIN_S = 5.0 if on_daphne.IS_CHOSEN else PATIENCE_S


@asynccontextmanager
async def idle(service: Server, key: str, *symbols: str, **fields: Any) -> AsyncIterator[RawClient]:
    """Subscribed, and reading nothing more."""
    client = await RawClient.connect(service.port, 4096, MARKET)
    message = {"action": "subscribe", "symbols": symbols, "api_key": key, **fields}
    client.send(TEXT, json.dumps(message).encode())
    assert json.loads((await client.hear())[1])["type"] == "subscribed"
    try:
        yield client
    finally:
        client.abort()


async def last_words(client: RawClient) -> tuple[Frame, int]:
    """The last frame, and the code with which the service closes."""
    last, (opcode, payload) = b"", await client.hear()
    while opcode != CLOSE:
        last, (opcode, payload) = payload, await client.hear()
    return json.loads(last), int.from_bytes(payload[:2], "big")


async def ticks(ticker: Ticker, symbol: str, count: int) -> None:
    for _ in range(count // 1_000):
        await asyncio.to_thread(ticker, symbol, 1_000)


@pytest.mark.parametrize("is_chatty", [False, True])
def test_who_does_not_read_is_closed_with_4430_and_its_place_is_free_at_once(
    service: Server,
    ticker: Ticker,
    key: str,
    symbol: str,
    is_chatty: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The client reads only after the last tick, and a slow machine needs longer for those.
    monkeypatch.setattr("serving.websocket.protocol.STALLED_LINGER_S", PATIENCE_S)

    async def run() -> tuple[Frame, int]:
        before, given_up = service.run(open_streams.count()), streams.prices.hub.slow.given_up
        async with idle(service, key, symbol) as client:
            for _ in range(MANY // 1_000):
                await ticks(ticker, symbol, 1_000)
                if is_chatty:
                    client.send(TEXT, b'{"action":"ping"}')
            await until(lambda: streams.prices.hub.slow.given_up > given_up, SEEN_WITHIN_S)
            assert service.run(open_streams.count()) == before
            return await last_words(client)

    refused, code = asyncio.run(run())
    assert (refused["error"]["code"], refused["fatal"], refused["retry"]) == ("slow_consumer", True, True)
    assert code == 4430


def test_others_miss_nothing_of_a_slow_client(
    opened: Open, service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol, features=["seq"])

    async def run() -> None:
        async with idle(service, key, symbol):
            for _ in range(MANY // 1_000):
                await ticks(ticker, symbol, 1_000)
                heard.extend(await asyncio.to_thread(socket.hear_of, 1_000, "seq"))

    heard: list[int] = []
    asyncio.run(run())
    assert heard == list(range(1, MANY + 1))


def test_latest_gives_the_newest_price_and_says_how_many_were_left_out(
    service: Server, ticker: Ticker, key: str, symbol: str
) -> None:
    other = make_instrument(f"QUIET{symbol}").symbol

    async def run() -> list[Frame]:
        async with idle(service, key, symbol, other, features=["latest", "seq"]) as client:
            await ticks(ticker, symbol, MANY)
            last = (await asyncio.to_thread(ticker, other))[0]
            heard: list[Frame] = []
            while not heard or heard[-1].get("bid") != last.bid:
                heard.append(json.loads((await client.hear())[1]))
            return heard

    heard = asyncio.run(run())
    ticked = [frame for frame in heard if frame.get("symbol") == symbol and "type" not in frame]
    conflated = [frame for frame in heard if frame.get("type") == "conflated"]
    assert ticked[-1]["seq"] == MANY
    assert sum(frame["volume"] for frame in ticked) == MANY
    assert sum(frame["dropped"] for frame in conflated) == MANY - len(ticked) > 0
    assert {frame["symbol"] for frame in conflated} == {symbol}
