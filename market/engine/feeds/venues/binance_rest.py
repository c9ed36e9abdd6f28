"""Binance's REST side: which names it knows, as it acknowledges a subscription to any, and its bars of
trades."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

import httpx2
import msgspec

from market.prices.candles import MINUTE_MS, PriceBar

from .venue_history import CheckedMinutes, HistoryFailed, Params, checked, fetch, whole_minutes

NAMES_PER_REQUEST = 100
TRADING = "TRADING"


class BinanceSymbol(msgspec.Struct):
    symbol: str
    status: str = TRADING


class ExchangeInfo(msgspec.Struct):
    symbols: list[BinanceSymbol]


EXCHANGE_INFO = msgspec.json.Decoder(ExchangeInfo)


class BinanceListing(NamedTuple):
    unknown: dict[str, str]
    """Of each name that Binance does not have, why it says so."""
    resting: dict[str, str]
    """The status of those that it has and does not trade now."""


async def look_up(client: httpx2.AsyncClient, rest_url: str, names: Iterable[str]) -> BinanceListing:
    """`HistoryFailed` where it cannot be asked."""
    every = sorted(names)
    waiting = [every[begin : begin + NAMES_PER_REQUEST] for begin in range(0, len(every), NAMES_PER_REQUEST)]
    listed = BinanceListing({}, {})
    while waiting:
        asked = waiting.pop()
        try:
            known = await _ask_for_names(client, rest_url, asked)
        except HistoryFailed as failed:
            if failed.status != HTTPStatus.BAD_REQUEST:
                raise
            # It refuses all for one bad name, without a word on which: that is found by halving.
            if len(asked) == 1:
                listed.unknown[asked[0]] = str(failed)
            else:
                middle = len(asked) // 2
                waiting += [asked[:middle], asked[middle:]]
            continue
        listed.unknown.update({name: "it is not listed" for name in asked if name not in known})
        listed.resting.update({name: status for name, status in known.items() if status != TRADING})
    return listed


async def _ask_for_names(client: httpx2.AsyncClient, rest_url: str, names: list[str]) -> dict[str, str]:
    params = {"symbols": msgspec.json.encode(names).decode()}
    answer = await fetch(client, f"{rest_url}/api/v3/exchangeInfo", params)
    try:
        return {one.symbol: one.status for one in EXCHANGE_INFO.decode(answer.body).symbols}
    except ValueError as error:
        raise HistoryFailed(f"Binance's exchange information cannot be read: {error}") from None


BARS_PER_REQUEST = 1000


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

    def candle(self, *, counted: bool) -> PriceBar:
        # Where live volume is the number of ticks, that of trades comes nearest; a size would tower above it.
        volume = float(self.trades) if counted else self.traded
        prices = self.open, self.high, self.low, self.close
        return PriceBar(self.opened_ms, *prices, volume, ask_high=self.high, ask_low=self.low)


KLINES = msgspec.json.Decoder(list[Kline], strict=False)


async def binance_history(
    client: httpx2.AsyncClient, rest_url: str, symbol: str, start_ms: int, end_ms: int, *, counted: bool
) -> list[PriceBar]:
    """`counted` where the instrument's live volume is a number of ticks."""
    start_ms, end_ms = whole_minutes(start_ms, end_ms)
    minutes = CheckedMinutes(start_ms, end_ms)
    # Windows of equal length, so that no answer decides how often we ask.
    span_ms = BARS_PER_REQUEST * MINUTE_MS
    for begin_ms in range(start_ms, end_ms, span_ms):
        window = {"startTime": begin_ms, "endTime": min(begin_ms + span_ms, end_ms) - 1}
        params: Params = {"symbol": symbol, "interval": "1m", "limit": BARS_PER_REQUEST, **window}
        answer = await fetch(client, f"{rest_url}/api/v3/klines", params)
        add_klines(minutes, answer.body, answer.sent_ms, counted=counted)
    return checked(minutes, f"Binance {symbol}")


def add_klines(minutes: CheckedMinutes, body: bytes, sent_ms: int | None, *, counted: bool) -> None:
    try:
        klines = KLINES.decode(body)
    except ValueError as error:
        raise HistoryFailed(f"Binance's klines cannot be read: {error}") from None
    for kline in klines:
        # Nothing marks the running minute. Where our clock is fast, only Binance's own knows which it is.
        if sent_ms is None or kline.opened_ms + MINUTE_MS <= sent_ms:
            minutes.add(kline.candle(counted=counted))
