"""OANDA's candles: bars of the bid and of the ask."""

from __future__ import annotations

from urllib.parse import quote

import httpx2
import msgspec

from market.engine.feeds.rfc3339 import to_ms
from market.prices.candles import Candle
from market.prices.history import iso

from .client import HistoryFailed, Params, checked, fetch
from .minutes import Minutes, whole_minutes


class Prices(msgspec.Struct):
    o: float
    h: float
    l: float  # noqa: E741 - OANDA's name
    c: float


class Bar(msgspec.Struct):
    time: str
    complete: bool
    volume: int
    bid: Prices
    ask: Prices

    def candle(self) -> Candle:
        """Its volume is the number of prices, as it is live."""
        bid, volume = self.bid, float(self.volume)
        return Candle(to_ms(self.time), bid.o, bid.h, bid.l, bid.c, volume, self.ask.h, self.ask.l)


class Answer(msgspec.Struct):
    candles: list[Bar]


ANSWER = msgspec.json.Decoder(Answer, strict=False)


async def oanda_history(
    client: httpx2.AsyncClient, rest_url: str, instrument: str, start_ms: int, end_ms: int
) -> list[Candle]:
    """One request: it may span 5,000 candles, and three days have 4,320."""
    start_ms, end_ms = whole_minutes(start_ms, end_ms)
    if start_ms >= end_ms:
        return []
    params: Params = {"price": "BA", "granularity": "M1", "from": iso(start_ms), "to": iso(end_ms)}
    answer = await fetch(client, f"{rest_url}/v3/instruments/{quote(instrument, safe='')}/candles", params)
    return checked(read_bars(answer.body, start_ms, end_ms), f"OANDA {instrument}")


def read_bars(body: bytes, start_ms: int, end_ms: int) -> Minutes:
    minutes = Minutes(start_ms, end_ms)
    try:
        for bar in ANSWER.decode(body).candles:
            if bar.complete:
                minutes.add(bar.candle())
    except ValueError as error:
        raise HistoryFailed(f"OANDA's candles cannot be read: {error}") from None
    return minutes
