"""Kraken's OHLC: bars of trades, at most the last 720."""

from __future__ import annotations

import httpx2
import msgspec

from market.prices.candles import Candle

from .client import HistoryFailed, Params, checked, fetch
from .minutes import Minutes, whole_minutes

# The REST side has its own names for the oldest coins.
OLD_NAMES = {"BTC": "XBT", "DOGE": "XDG"}


class Bar(msgspec.Struct, array_like=True):
    opened_s: int
    open: float
    high: float
    low: float
    close: float
    average: float
    traded: float
    trades: int

    def candle(self, *, counted: bool) -> Candle:
        # Where live volume is the number of ticks, that of trades comes nearest; a size would tower above it.
        volume = float(self.trades) if counted else self.traded
        prices = self.open, self.high, self.low, self.close
        return Candle(self.opened_s * 1000, *prices, volume, ask_high=self.high, ask_low=self.low)


class Answer(msgspec.Struct):
    error: list[str]
    result: dict[str, list[Bar] | int | str] = {}


ANSWER = msgspec.json.Decoder(Answer, strict=False)


def rest_pair(pair: str) -> str:
    """BTC/USD is XBTUSD there."""
    return "".join(OLD_NAMES.get(part, part) for part in pair.split("/"))


async def kraken_history(
    client: httpx2.AsyncClient, rest_url: str, pair: str, start_ms: int, end_ms: int, *, counted: bool
) -> list[Candle]:
    """`counted` where the instrument's live volume is a number of ticks."""
    start_ms, end_ms = whole_minutes(start_ms, end_ms)
    if start_ms >= end_ms:
        return []
    # A second early: the documentation does not say whether the bar at `since` is included.
    params: Params = {"pair": rest_pair(pair), "interval": 1, "since": start_ms // 1000 - 1}
    answer = await fetch(client, f"{rest_url}/0/public/OHLC", params)
    return checked(read_bars(answer.body, start_ms, end_ms, counted=counted), f"Kraken {pair}")


def read_bars(body: bytes, start_ms: int, end_ms: int, *, counted: bool) -> Minutes:
    minutes = Minutes(start_ms, end_ms)
    # The last one is always still forming.
    for bar in _bars(body)[:-1]:
        # There is no way to ask for an end, so what comes after it is no fault.
        if bar.opened_s * 1000 < end_ms:
            minutes.add(bar.candle(counted=counted))
    return minutes


def _bars(body: bytes) -> list[Bar]:
    try:
        answer = ANSWER.decode(body)
    except ValueError as error:
        raise HistoryFailed(f"Kraken's bars cannot be read: {error}") from None
    if answer.error:
        raise HistoryFailed(f"Kraken refused: {', '.join(answer.error)[:200]}")
    # Keyed by yet another name of the pair (XXBTZUSD), beside "last".
    lists = [bars for bars in answer.result.values() if isinstance(bars, list)]
    if len(lists) != 1:
        raise HistoryFailed("Kraken answered without bars")
    return lists[0]
