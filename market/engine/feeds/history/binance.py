"""Binance's klines: bars of trades."""

from __future__ import annotations

import httpx2
import msgspec

from market.prices.candles import Candle
from market.prices.timeframes import MINUTE_MS

from .client import HistoryFailed, Params, checked, fetch
from .minutes import Minutes, whole_minutes

PER_REQUEST = 1000


class Kline(msgspec.Struct, array_like=True):
    opened_ms: int
    open: float
    high: float
    low: float
    close: float
    traded: float
    ended_ms: int
    quote_traded: float
    trades: int

    def candle(self, *, counted: bool) -> Candle:
        # Where live volume is the number of ticks, that of trades comes nearest; a size would tower above it.
        volume = float(self.trades) if counted else self.traded
        prices = self.open, self.high, self.low, self.close
        return Candle(self.opened_ms, *prices, volume, ask_high=self.high, ask_low=self.low)


KLINES = msgspec.json.Decoder(list[Kline], strict=False)


async def binance_history(
    client: httpx2.AsyncClient, rest_url: str, symbol: str, start_ms: int, end_ms: int, *, counted: bool
) -> list[Candle]:
    """`counted` where the instrument's live volume is a number of ticks."""
    start_ms, end_ms = whole_minutes(start_ms, end_ms)
    minutes = Minutes(start_ms, end_ms)
    # Windows of equal length, so that no answer decides how often we ask.
    span_ms = PER_REQUEST * MINUTE_MS
    for begin_ms in range(start_ms, end_ms, span_ms):
        window = {"startTime": begin_ms, "endTime": min(begin_ms + span_ms, end_ms) - 1}
        params: Params = {"symbol": symbol, "interval": "1m", "limit": PER_REQUEST, **window}
        answer = await fetch(client, f"{rest_url}/api/v3/klines", params)
        add_klines(minutes, answer.body, answer.sent_ms, counted=counted)
    return checked(minutes, f"Binance {symbol}")


def add_klines(minutes: Minutes, body: bytes, sent_ms: int | None, *, counted: bool) -> None:
    try:
        klines = KLINES.decode(body)
    except ValueError as error:
        raise HistoryFailed(f"Binance's klines cannot be read: {error}") from None
    for kline in klines:
        # Nothing marks the running minute. Where our clock is fast, only Binance's own knows which it is.
        if sent_ms is None or kline.opened_ms + MINUTE_MS <= sent_ms:
            minutes.add(kline.candle(counted=counted))
