"""Closed candles, each encoded once, and the forming ones behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from accounts.plain_json import number

from .candles import Candle, CandleBuilder, Closed
from .day import Day
from .timeframes import COARSER, TIMEFRAMES

KEPT = 500
RECENT = 10


@lru_cache(maxsize=4096)
def iso(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def encode_candle(candle: Candle, digits: int) -> bytes:
    prices = candle.open, candle.high, candle.low, candle.close
    return _encode(candle.opened_ms, *prices, candle.volume, digits)


@lru_cache(maxsize=4096)
def _encode(
    opened_ms: int, opened: float, high: float, low: float, close: float, volume: float, digits: int
) -> bytes:
    """Remembered, because a forming candle is asked for more often than ticks change it."""
    first, top, bottom, last = (number(round(price, digits)) for price in (opened, high, low, close))
    return (
        f'{{"time":"{iso(opened_ms)}","open":{first},"high":{top},"low":{bottom},"close":{last},'
        f'"volume":{number(round(volume, 8))}}}'
    ).encode()


class Bars(msgspec.Struct):
    """Encoded candles of one timeframe, oldest first."""

    ohlcv: bytes
    last_closed_ms: int | None


class _Series:
    """The closed candles of one symbol and timeframe."""

    __slots__ = ("_joined", "encoded", "opened_ms")

    def __init__(self) -> None:
        self.encoded: list[bytes] = []
        self.opened_ms: list[int] = []
        self._joined: tuple[int, int, bytes] | None = None

    def joined(self, start: int, end: int) -> bytes:
        """A range as one piece, remembered: pollers ask for the same one until a candle closes."""
        if self._joined is None or self._joined[:2] != (start, end):
            self._joined = start, end, b",".join(self.encoded[start:end])
        return self._joined[2]

    def keep(self, candle: Candle, digits: int) -> bool:
        """False for a candle older than the last. The same one again is the last one, gone on."""
        self._joined = None
        if self.opened_ms and candle.opened_ms <= self.opened_ms[-1]:
            if candle.opened_ms < self.opened_ms[-1]:
                return False
            self.encoded[-1] = encode_candle(candle, digits)
            return True
        self.opened_ms.append(candle.opened_ms)
        self.encoded.append(encode_candle(candle, digits))
        # Trimmed now and then only: dropping the first element moves all others.
        if len(self.encoded) >= 2 * KEPT:
            del self.encoded[:-KEPT], self.opened_ms[:-KEPT]
        return True


class History:
    """The candles of one symbol in all timeframes."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.simulated: bool | None = None
        """Of which kind what was loaded is; None where nothing was."""
        self.builder = CandleBuilder()
        self.day = Day(digits)
        self.recent: deque[Candle] = deque(maxlen=RECENT)
        """The last closed minutes, as candles."""
        self._series: dict[str, _Series] = {timeframe: _Series() for timeframe in TIMEFRAMES}

    def add(self, time_ms: int, price: float, ask: float, volume: float) -> list[Closed]:
        if self.builder.extend(time_ms, price, ask, volume):
            return []
        return self._keep(self.builder.add(time_ms, price, ask, volume))

    def close_until(self, now_ms: int) -> list[Closed]:
        return self._keep(self.builder.close_until(now_ms))

    def fill(self, opened_ms: int) -> list[Closed]:
        return self._keep(self.builder.fill(opened_ms))

    def add_minute(self, minute: Candle) -> list[Closed]:
        return self._keep(self.builder.refill(minute))

    def restore(self, timeframe: str, candle: Candle) -> None:
        """Take a closed candle from the store."""
        self._series[timeframe].keep(candle, self.digits)

    def resume(self, minutes: Iterable[Candle]) -> None:
        """Closed minutes out of the store: what the forming candles go on from."""
        for minute in minutes:
            self.builder.resume(minute)
            self._remember(minute)
        # A closed market's hour is stored before it ends, and so is one that the clock closed.
        for _ in self._closed_as_in(self):
            pass

    def close_like(self, other: History) -> None:
        """What is closed there is closed here."""
        self._keep(self._closed_as_in(other))

    def _closed_as_in(self, other: History) -> Iterator[Closed]:
        for timeframe in COARSER:
            opened_ms = other.last_closed_ms(timeframe)
            if opened_ms is not None:
                yield from self.builder.close_again(timeframe, opened_ms)

    def last_closed_ms(self, timeframe: str) -> int | None:
        opened_ms = self._series[timeframe].opened_ms
        return opened_ms[-1] if opened_ms else None

    def bars(self, timeframe: str, count: int, *, closed_only: bool) -> Bars:
        """The last candles. Only the engine says that one is closed, and never a clock."""
        series = self._series[timeframe]
        opened_ms, stored = series.opened_ms, len(series.opened_ms)
        last_closed_ms = opened_ms[-1] if opened_ms else None
        forming = None if closed_only else self.builder.forming(timeframe)
        if forming is None or (last_closed_ms is not None and forming.opened_ms <= last_closed_ms):
            return Bars(series.joined(max(0, stored - count), stored), last_closed_ms)
        closed, last = series.joined(max(0, stored - count + 1), stored), encode_candle(forming, self.digits)
        return Bars(b"%s,%s" % (closed, last) if closed else last, last_closed_ms)

    def _keep(self, closed: Iterator[Closed]) -> list[Closed]:
        kept = [(name, candle) for name, candle in closed if self._series[name].keep(candle, self.digits)]
        for name, candle in kept:
            if name == "1m":
                self._remember(candle)
        return kept

    def _remember(self, minute: Candle) -> None:
        self.day.add(minute)
        self.recent.append(minute)
