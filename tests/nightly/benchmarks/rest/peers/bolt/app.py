"""django-bolt, Rust under Django, as its documentation writes it: msgspec Structs, which it encodes. It
checks the key and keeps the window, and sends none of our headers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from django_bolt import BoltAPI
from django_bolt.exceptions import HTTPException
from django_bolt.param_functions import Header

from tests.nightly.benchmarks.rest.peers.raw import admit, bars, quote


class NestedQuote(msgspec.Struct):
    bid: float
    ask: float
    spread: float
    timestamp: str


class Quote(msgspec.Struct):
    symbol: str
    bid: float
    ask: float
    spread: float
    timestamp: str


class Candle(msgspec.Struct):
    time: str
    open: float
    high: float
    low: float
    close: float
    volume: float


class Market(msgspec.Struct):
    symbol: str
    timeframe: str
    ohlcv: list[Candle]
    quote: NestedQuote


QUOTE = msgspec.json.decode(quote.body, type=Quote)
MARKET = msgspec.json.decode(bars.body, type=Market)
Key = Annotated[str, Header(alias="x-api-key")]
api = BoltAPI()


def check(key: str) -> None:
    if admit(key) is None:
        raise HTTPException(status_code=401, detail="invalid API key")


@api.get("/api/market/{symbol}/quote")  # type: ignore[untyped-decorator]
async def get_quote(symbol: str, key: Key) -> Quote:
    check(key)
    return QUOTE


@api.get("/api/market/{symbol}")  # type: ignore[untyped-decorator]
async def get_market(symbol: str, key: Key, timeframe: str = "1h", bars: int = 100) -> Market:
    check(key)
    return MARKET
