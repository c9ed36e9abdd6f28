"""What a type checker must know of answers and frames; checked by `make lint` and never run. mypy complains
of an `ignore` that it does not need."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import assert_type

from tickwire import AsyncClient, Client, State
from tickwire.types import CandleUpdate, NewSignal, NewsItem, PriceTick, Quote


def answers(client: Client) -> None:
    assert_type(client.quote("EURUSD"), Quote)
    assert_type(client.quotes(["EURUSD"])["items"][0]["age_ms"], int)
    client.quote("EURUSD")["mid"]  # type: ignore[misc]
    client.quote(1)  # type: ignore[arg-type]
    client.market("EURUSD", bar=3)  # type: ignore[call-arg]
    assert_type([candle["close"] for candle in client.history("EURUSD")], list[float])
    assert_type(client.analysis("EURUSD")["levels"]["supports"][0]["price"], float)


def one_of_two(client: Client) -> None:
    for signal in client.all_signals():
        if signal["status"] == "closed":
            assert_type(signal["pnl"], float)
        if "pnl" in signal:
            assert_type(signal["close_price"], float)
        else:
            signal["pnl"]  # type: ignore[typeddict-item]


def frames(client: Client) -> None:
    for tick in client.watch("EURUSD", state=State.load("state.json"), fill=True):
        assert_type(tick, PriceTick)
    assert_type([frame["symbol"] for frame in client.order_flow()], list[str])
    for candle in client.follow_candles("EURUSD"):
        assert_type(candle, CandleUpdate)
    for frame in client.follow_signals():
        if "type" in frame:
            assert_type(frame["pnl"], float)
        else:
            assert_type(frame, NewSignal)


async def later(client: AsyncClient) -> None:
    assert_type(client.quote("EURUSD"), Awaitable[Quote])
    assert_type((await client.market("EURUSD"))["ohlcv"][0]["close"], float)
    async for item in client.all_news():
        assert_type(item, NewsItem)
    async for tick in client.watch("EURUSD"):
        assert_type(tick, PriceTick)
