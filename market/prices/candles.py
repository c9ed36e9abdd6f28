"""Candles from ticks. Ticks make minutes, minutes make everything coarser, so that each interval is
the aggregate of its 1m candles by construction. Pure: no clock, times are passed in."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .timeframes import COARSER, MINUTE_MS, TIMEFRAMES, interval_start

VOLUME_DECIMALS = 8
# What the database has room for, in characters.
MOST_SOURCES = 120


class Candle(msgspec.Struct, gc=False):
    """One interval's prices; `opened_ms` is the open of the interval."""

    opened_ms: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    ask_high: float
    ask_low: float
    source: str = ""
    """The feed it is of; several in their order: kraken+binance. Readers do not know it."""

    def take(self, later: Candle) -> None:
        """Add what came after, within the same interval."""
        self.high = max(self.high, later.high)
        self.low = min(self.low, later.low)
        self.close = later.close
        # As stored, so that a sum of stored volumes is the stored sum.
        self.volume = round(self.volume + later.volume, VOLUME_DECIMALS)
        self.ask_high = max(self.ask_high, later.ask_high)
        self.ask_low = min(self.ask_low, later.ask_low)
        if later.source != self.source:
            self.source = joined(self.source, later.source)

    def opened_at(self, opened_ms: int) -> Candle:
        return msgspec.structs.replace(self, opened_ms=opened_ms)


Closed = tuple[str, Candle]


def joined(sources: str, later: str) -> str:
    known = [*filter(None, sources.split("+"))]
    known += [source for source in later.split("+") if source and source not in known]
    whole = "+".join(known)
    return whole if len(whole) <= MOST_SOURCES else sources


class CandleBuilder:
    """The forming candles of one instrument. Ticks come in order, none from before the last closed minute."""

    def __init__(self) -> None:
        self._minute: Candle | None = None
        self._settled: Candle | None = None
        """The forming minute, once all that ended before it is closed."""
        self._coarser: dict[str, Candle] = {}
        self._ended: dict[str, Candle] = {}
        """The last candle of each interval that ended."""
        self._last: tuple[float, float] | None = None
        """The last price and ask: what a flat candle repeats."""
        self.source = ""
        """Whose ticks come now."""

    def price_by(self, source: str) -> None:
        self.source = source
        # The next tick is looked at closely: the minute that it goes on with may be of another source.
        self._settled = None

    def add(self, time_ms: int, price: float, ask: float, volume: float) -> Iterator[Closed]:
        """Take a tick. Yields the candles that its time closes, finest first."""
        yield from self.close_until(time_ms)
        minute = self._settled = self._minute
        if minute is not None and minute.source != self.source:
            minute.source = joined(minute.source, self.source)
        if self.extend(time_ms, price, ask, volume):
            return
        opened_ms = interval_start(time_ms, MINUTE_MS)
        first = Candle(opened_ms, price, price, price, price, volume, ask, ask, self.source)
        ended = self._ended.get("1m")
        if ended is not None and ended.opened_ms == opened_ms:
            yield from self._amend(first)
        else:
            self._minute = self._settled = first
        self._last = price, ask

    def extend(self, time_ms: int, price: float, ask: float, volume: float) -> bool:
        """Take a tick that closes nothing, as nearly all do; False for one that `add` has to take."""
        minute = self._settled
        if minute is None or time_ms >= minute.opened_ms + MINUTE_MS:
            return False
        if price > minute.high:
            minute.high = price
        if price < minute.low:
            minute.low = price
        if ask > minute.ask_high:
            minute.ask_high = ask
        if ask < minute.ask_low:
            minute.ask_low = ask
        minute.close = price
        minute.volume += volume
        self._last = price, ask
        return True

    def add_minute(self, minute: Candle) -> Iterator[Closed]:
        """Take a whole closed minute."""
        self._settled = None
        minute.volume = round(minute.volume, VOLUME_DECIMALS)
        self._ended["1m"] = minute
        yield "1m", minute
        yield from self._close_coarser(minute.opened_ms)
        self._merge(minute)
        yield from self._close_coarser(minute.opened_ms + MINUTE_MS)

    def refill(self, minute: Candle) -> Iterator[Closed]:
        """Take a closed minute from elsewhere. One that is known already can only become more complete."""
        yield from self.close_until(minute.opened_ms + MINUTE_MS)
        ended = self._ended.get("1m")
        if ended is None or ended.opened_ms < minute.opened_ms:
            self._last = minute.close, minute.ask_low
            yield from self.add_minute(minute)
        elif ended.opened_ms == minute.opened_ms:
            minute.volume = max(0.0, minute.volume - ended.volume)
            self._last = minute.close, minute.ask_low
            yield from self._amend(minute)

    def close_until(self, now_ms: int) -> Iterator[Closed]:
        """Close what has ended by now."""
        minute = self._minute
        if minute is not None and minute.opened_ms + MINUTE_MS <= now_ms:
            yield from self._close_minute(minute)
        yield from self._close_coarser(now_ms)

    def close_all(self) -> Iterator[Closed]:
        """The market closes, and with it every candle, early if need be. A market that opens again within
        the interval (metals pause for an hour each day) goes on with the same candle."""
        if self._minute is not None:
            yield from self._close_minute(self._minute)
        for timeframe, candle in self._coarser.items():
            yield timeframe, msgspec.structs.replace(candle)

    def fill(self, opened_ms: int) -> Iterator[Closed]:
        """A minute went by without a tick while the source was alive: a flat candle."""
        ended = self._ended.get("1m")
        if self._last is None or self._minute is not None or (ended and ended.opened_ms >= opened_ms):
            return
        price, ask = self._last
        yield from self._close_coarser(opened_ms)
        yield from self._close_minute(
            Candle(opened_ms, price, price, price, price, 0.0, ask, ask, self.source)
        )

    def resume(self, minute: Candle) -> None:
        """Take a closed minute from the store, so that the coarser candles go on from it."""
        for _ in self.add_minute(minute):
            pass
        # Only a minute's extremes of the ask are stored; a last quote (`resume_forming`) knows better.
        self._last = minute.close, minute.ask_low

    def resume_forming(self, minute: Candle | None, price: float, ask: float) -> None:
        """Take the minute that formed when the store was last written, and the last price and ask."""
        ended = self._ended.get("1m")
        if minute is not None and (ended is None or ended.opened_ms < minute.opened_ms):
            self._minute, self._settled = minute, None
        self._last = price, ask

    def forming(self, timeframe: str) -> Candle | None:
        minute = self._minute
        if timeframe == "1m" or minute is None:
            return minute if timeframe == "1m" else self._coarser.get(timeframe)
        opened_ms = interval_start(minute.opened_ms, TIMEFRAMES[timeframe])
        candle = self._closed_part(timeframe, opened_ms)
        if candle is None:
            return minute.opened_at(opened_ms)
        candle.take(minute)
        return candle

    def _close_minute(self, minute: Candle) -> Iterator[Closed]:
        self._minute = None
        yield from self.add_minute(minute)

    def _amend(self, late: Candle) -> Iterator[Closed]:
        """A tick was under way while the clock closed its minute. Closed candles may be waiting to be
        written in a thread, so they are replaced rather than changed."""
        for timeframe, span_ms in TIMEFRAMES.items():
            opened_ms = interval_start(late.opened_ms, span_ms)
            forming, ended = self._coarser.get(timeframe), self._ended.get(timeframe)
            if forming is not None and forming.opened_ms == opened_ms:
                forming.take(late)
            elif ended is not None and ended.opened_ms == opened_ms:
                self._ended[timeframe] = amended = msgspec.structs.replace(ended)
                amended.take(late)
                yield timeframe, amended

    def _merge(self, minute: Candle) -> None:
        for timeframe, span_ms in COARSER.items():
            opened_ms = interval_start(minute.opened_ms, span_ms)
            candle = self._closed_part(timeframe, opened_ms)
            if candle is None:
                candle = minute.opened_at(opened_ms)
            else:
                candle.take(minute)
            self._coarser[timeframe] = candle

    def _closed_part(self, timeframe: str, opened_ms: int) -> Candle | None:
        """A copy of what an interval holds so far. Where its minutes come late, the clock has closed it."""
        for candle in (self._coarser.get(timeframe), self._ended.get(timeframe)):
            if candle is not None and candle.opened_ms == opened_ms:
                return msgspec.structs.replace(candle)
        return None

    def _close_coarser(self, now_ms: int) -> Iterator[Closed]:
        for timeframe, candle in list(self._coarser.items()):
            if candle.opened_ms + COARSER[timeframe] <= now_ms:
                self._ended[timeframe] = self._coarser.pop(timeframe)
                yield timeframe, candle
