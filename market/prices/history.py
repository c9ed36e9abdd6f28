"""Closed candles, each encoded once, and the forming ones behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from math import inf

import msgspec

from core.plain_json import number

from .candles import COARSER, MINUTE_MS, TIMEFRAMES, VOLUME_DECIMALS, CandleBuilder, Closed, PriceBar
from .day import RollingDay

KEPT = 500
RECENT = 10


@lru_cache(maxsize=4096)
def iso(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def encode_candle(candle: PriceBar, digits: int) -> bytes:
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


class EncodedBars(msgspec.Struct):
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

    def take_back(self, opened_ms: int) -> None:
        """The last candle, if it is this one: it forms again."""
        if self.opened_ms and self.opened_ms[-1] == opened_ms:
            self._joined = None
            del self.opened_ms[-1], self.encoded[-1]

    def keep(self, candle: PriceBar, digits: int) -> bool:
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
        self.day = RollingDay(digits)
        self.recent: deque[PriceBar] = deque(maxlen=RECENT)
        """The last closed minutes, as candles."""
        self.closed_until_ms = 0
        """When the last closed minute ended; 0 before the first."""
        self._series: dict[str, _Series] = {timeframe: _Series() for timeframe in TIMEFRAMES}
        self._restored: dict[str, PriceBar] = {}
        """The last of each that came from the store."""

    def add(self, time_ms: int, price: float, ask: float, volume: float) -> list[Closed]:
        if self.builder.extend(time_ms, price, ask, volume):
            return []
        self._reopen(time_ms)
        return self._keep(self.builder.add(time_ms, price, ask, volume))

    def close_until(self, now_ms: int) -> list[Closed]:
        return self._keep(self.builder.close_until(now_ms))

    def halt(self, reopens_ms: int) -> list[Closed]:
        return self._keep(self.builder.halt(reopens_ms))

    def fill(self, opened_ms: int) -> list[Closed]:
        self._reopen(opened_ms)
        return self._keep(self.builder.fill(opened_ms))

    def add_minute(self, minute: PriceBar) -> list[Closed]:
        return self._keep(self.builder.refill(minute))

    def restore(self, timeframe: str, candle: PriceBar) -> None:
        """Take a closed candle from the store."""
        self._series[timeframe].keep(candle, self.digits)
        if timeframe == "1m":
            self.closed_until_ms = max(self.closed_until_ms, candle.opened_ms + MINUTE_MS)
        self._restored[timeframe] = candle

    def resume(self, minutes: Iterable[PriceBar], at_ms: float = inf, over_ms: float = inf) -> None:
        """Closed minutes out of the store: what the forming candles go on from. It is `at_ms`, and what ends
        by `over_ms` has nothing more to come: a closed market's hour is stored before it ends."""
        for minute in minutes:
            self.builder.resume(minute)
            self._remember(minute)
        for timeframe, span_ms in COARSER.items():
            candle, opened_ms = self.builder.unfinished(timeframe), self.last_closed_ms(timeframe)
            if candle is None or opened_ms is None or candle.opened_ms > opened_ms:
                continue
            ends_ms = opened_ms + span_ms
            is_stored = candle.opened_ms < opened_ms or not self._is_more(candle, timeframe)
            if is_stored and ends_ms <= over_ms:
                for _ in self.builder.close_again(timeframe, opened_ms, is_early=ends_ms > at_ms):
                    pass
            else:
                self._series[timeframe].take_back(opened_ms)

    def close_like(self, other: History) -> None:
        """What is closed there is closed here."""
        for timeframe in COARSER:
            opened_ms, is_early = other.last_closed_ms(timeframe), other.builder.is_early(timeframe)
            if opened_ms is not None:
                self._keep(self.builder.close_again(timeframe, opened_ms, is_early=is_early))

    def _is_more(self, candle: PriceBar, timeframe: str) -> bool:
        """Whether its minutes are those of the stored one and others: that was written before its time, and
        nobody came to write it again."""
        stored = self._restored[timeframe]
        volume = round(stored.volume, VOLUME_DECIMALS)
        changes = candle.high - stored.high, stored.low - candle.low, candle.volume - volume
        is_all = candle.open == stored.open and min(changes) >= 0
        return is_all and (max(changes) > 0 or candle.close != stored.close)

    def _reopen(self, time_ms: int) -> None:
        for timeframe, opened_ms in self.builder.reopen(time_ms):
            self._series[timeframe].take_back(opened_ms)

    def last_closed_ms(self, timeframe: str) -> int | None:
        opened_ms = self._series[timeframe].opened_ms
        return opened_ms[-1] if opened_ms else None

    def bars(self, timeframe: str, count: int, *, closed_only: bool) -> EncodedBars:
        """The last candles. Only the engine says that one is closed, and never a clock."""
        series = self._series[timeframe]
        opened_ms, stored = series.opened_ms, len(series.opened_ms)
        last_closed_ms = opened_ms[-1] if opened_ms else None
        forming = None if closed_only else self.builder.forming(timeframe)
        if forming is None or (last_closed_ms is not None and forming.opened_ms <= last_closed_ms):
            return EncodedBars(series.joined(max(0, stored - count), stored), last_closed_ms)
        closed, last = series.joined(max(0, stored - count + 1), stored), encode_candle(forming, self.digits)
        return EncodedBars(b"%s,%s" % (closed, last) if closed else last, last_closed_ms)

    def _keep(self, closed: Iterator[Closed]) -> list[Closed]:
        kept = [(name, candle) for name, candle in closed if self._series[name].keep(candle, self.digits)]
        for name, candle in kept:
            if name == "1m":
                self.closed_until_ms = candle.opened_ms + MINUTE_MS
                self._remember(candle)
        return kept

    def _remember(self, minute: PriceBar) -> None:
        self.day.add(minute)
        self.recent.append(minute)
