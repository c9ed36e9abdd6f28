"""OANDA's candles: bars of the bid, of the ask and of the mid."""

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
    ask: Prices
    bid: Prices | None = None
    mid: Prices | None = None

    def candle(self, price: str, *, counted: bool) -> Candle:
        """Its volume is the number of prices, which is no traded size."""
        bar, volume = self.mid if price == "mid" else self.bid, float(self.volume) if counted else 0.0
        if bar is None:
            raise ValueError(f"a candle has no {price}")
        return Candle(to_ms(self.time), bar.o, bar.h, bar.l, bar.c, volume, self.ask.h, self.ask.l)


class Answer(msgspec.Struct):
    candles: list[Bar]


ANSWER = msgspec.json.Decoder(Answer, strict=False)


async def oanda_history(
    client: httpx2.AsyncClient,
    rest_url: str,
    instrument: str,
    start_ms: int,
    end_ms: int,
    *,
    counted: bool,
    price: str = "bid",
) -> list[Candle]:
    """One request: it may span 5,000 candles, and three days have 4,320. `counted` where the instrument's
    live volume is a number of ticks; `price` is what its candles are made of, bid or mid."""
    start_ms, end_ms = whole_minutes(start_ms, end_ms)
    if start_ms >= end_ms:
        return []
    which = "MA" if price == "mid" else "BA"
    params: Params = {"price": which, "granularity": "M1", "from": iso(start_ms), "to": iso(end_ms)}
    answer = await fetch(client, f"{rest_url}/v3/instruments/{quote(instrument, safe='')}/candles", params)
    minutes = read_bars(answer.body, start_ms, end_ms, price, counted=counted)
    return checked(minutes, f"OANDA {instrument}")


def read_bars(body: bytes, start_ms: int, end_ms: int, price: str = "bid", *, counted: bool) -> Minutes:
    minutes = Minutes(start_ms, end_ms)
    try:
        for bar in ANSWER.decode(body).candles:
            if bar.complete:
                minutes.add(bar.candle(price, counted=counted))
    except ValueError as error:
        raise HistoryFailed(f"OANDA's candles cannot be read: {error}") from None
    return minutes
