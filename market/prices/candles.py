"""Candles from ticks. Ticks make minutes, and minutes make the coarser intervals, aligned to UTC: each is the
aggregate of its 1m candles by construction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, islice
from operator import add, attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from core.times import MINUTE_MS

TIMEFRAMES = {
    "1m": MINUTE_MS,
    "5m": 5 * MINUTE_MS,
    "15m": 15 * MINUTE_MS,
    "1h": 60 * MINUTE_MS,
    "4h": 240 * MINUTE_MS,
    "1d": 1440 * MINUTE_MS,
}

DAY_MS = TIMEFRAMES["1d"]
COARSER = {name: span_ms for name, span_ms in TIMEFRAMES.items() if name != "1m"}


def key_of_candles(symbol: str, timeframe: str) -> str:
    """By what the closed ones are numbered, as clients name it: EURUSD/1m."""
    return f"{symbol}/{timeframe}"


def interval_start(time_ms: int, span_ms: int) -> int:
    """The epoch began at a UTC midnight, so every span divides it evenly: 4h at 00, 04, 08 …"""
    return time_ms - time_ms % span_ms


VOLUME_DECIMALS = 8

# What the database has room for, in characters.
MOST_SOURCES = 120


class PriceBar(msgspec.Struct, gc=False):
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
    partial: bool = False
    """Something of it was missed, and did not come later. Readers do not know that either."""
    by_venue: bool = False
    """The venue's own bar of bid and ask, or partly so. Nor do they know this."""

    def take(self, later: PriceBar) -> None:
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
        if later.partial:
            self.partial = True
        if later.by_venue:
            self.by_venue = True

    @property
    def closing_ask(self) -> float:
        """The ask at its end, of which only the extremes are kept: as far from the close as it was from the
        low or the high, whichever is more."""
        spread = max(self.ask_low - self.low, self.ask_high - self.high)
        return min(max(round(self.close + spread, 8), self.ask_low), self.ask_high)

    def opened_at(self, opened_ms: int) -> PriceBar:
        return msgspec.structs.replace(self, opened_ms=opened_ms)


def aggregate(minutes: Iterable[PriceBar], span_ms: int) -> Iterator[PriceBar]:
    for opened_ms, group in groupby(minutes, lambda minute: interval_start(minute.opened_ms, span_ms)):
        first, *later = group
        candle = first.opened_at(opened_ms)
        for minute in later:
            candle.take(minute)
        yield candle


def whole(minutes: Sequence[PriceBar], span_ms: int) -> PriceBar:
    """The candle of one interval, as `take` makes it minute by minute."""
    first, last = minutes[0], minutes[-1]
    volume = first.volume
    for minute in islice(minutes, 1, None):
        volume = round(volume + minute.volume, VOLUME_DECIMALS)
    return PriceBar(
        opened_ms=interval_start(first.opened_ms, span_ms),
        open=first.open,
        high=max([minute.high for minute in minutes]),
        low=min([minute.low for minute in minutes]),
        close=last.close,
        volume=volume,
        ask_high=max([minute.ask_high for minute in minutes]),
        ask_low=min([minute.ask_low for minute in minutes]),
        source=reduce(joined_if_other, dict.fromkeys([minute.source for minute in minutes])),
        partial=any(minute.partial for minute in minutes),
        by_venue=any(minute.by_venue for minute in minutes),
    )


def joined_if_other(sources: str, later: str) -> str:
    return sources if later == sources else joined(sources, later)


def joined(sources: str, later: str) -> str:
    known = [*filter(None, sources.split("+"))]
    known += [source for source in later.split("+") if source and source not in known]
    whole = "+".join(known)
    return whole if len(whole) <= MOST_SOURCES else sources


Closed = tuple[str, PriceBar]


class TickColumns(NamedTuple):
    """Ticks of one instrument in their order."""

    times_ms: list[int]
    prices: list[float]
    asks: list[float]
    volumes: list[float]


class CandleBuilder:
    """The forming candles of one instrument. Ticks come in order, none from before the last closed minute."""

    def __init__(self) -> None:
        self._minute: PriceBar | None = None
        self._settled: PriceBar | None = None
        """The forming minute, once all that ended before it is closed."""
        self._coarser: dict[str, PriceBar] = {}
        self._ended: dict[str, PriceBar] = {}
        """The last candle of each interval that ended."""
        self._early: dict[str, int] = {}
        """Which of those ended before their time, because no session was to open in what was left of it."""
        self._last: tuple[float, float] | None = None
        """The last price and ask: what a flat candle repeats."""
        self.source = ""
        """Whose ticks come now."""

    def price_by(self, source: str) -> None:
        if source and source != self.source:
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
        if not self._is_closed("1m", opened_ms):
            first = PriceBar(opened_ms, price, price, price, price, volume, ask, ask, self.source)
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

    def extend_all(self, ticks: TickColumns, start: int) -> int:
        """What `extend` comes to with each tick from `start` on, up to the first that `add` has to take.
        Returns the place of that."""
        minute, times = self._settled, ticks.times_ms
        if minute is None or start == len(times):
            return start
        until_ms = minute.opened_ms + MINUTE_MS
        end = len(times)
        if max(times[start:]) >= until_ms:
            end = next(index for index in range(start, end) if times[index] >= until_ms)
        if end > start:
            prices, asks = ticks.prices[start:end], ticks.asks[start:end]
            minute.high, minute.low = max(minute.high, *prices), min(minute.low, *prices)
            minute.ask_high, minute.ask_low = max(minute.ask_high, *asks), min(minute.ask_low, *asks)
            minute.close = prices[-1]
            # One after the other: Python's own sum rounds in another way from 3.12 on.
            minute.volume = reduce(add, ticks.volumes[start:end], minute.volume)
            self._last = prices[-1], asks[-1]
        return end

    def add_minute(self, minute: PriceBar) -> Iterator[Closed]:
        """Take a whole closed minute."""
        self._settled = None
        minute.volume = round(minute.volume, VOLUME_DECIMALS)
        self._ended["1m"] = minute
        yield "1m", minute
        yield from self._close_coarser(minute.opened_ms)
        yield from self._merge(minute)
        yield from self._close_coarser(minute.opened_ms + MINUTE_MS)

    def refill(self, minute: PriceBar, *, replaces: bool = False) -> Iterator[Closed]:
        """Take a minute that was missed. One of which anything is known stays as it is, unless this one
        `replaces` what is known while it is open."""
        yield from self.close_until(minute.opened_ms)
        if replaces and self._minute is not None and self._minute.opened_ms == minute.opened_ms:
            self._minute = None
        forming = self._minute
        if self._is_closed("1m", minute.opened_ms) or (forming and forming.opened_ms == minute.opened_ms):
            return
        if forming is None:
            self._last = minute.close, minute.closing_ask
        # A copy: the one given is part of a record that others have still to hear.
        yield from self.add_minute(msgspec.structs.replace(minute))

    def add_part(self, part: PriceBar) -> Iterator[Closed]:
        """Go on with what was missed of a minute, which stays open."""
        yield from self.close_until(part.opened_ms)
        minute = self._minute
        if minute is not None:
            if minute.opened_ms == part.opened_ms:
                minute.take(part)
        elif not self._is_closed("1m", part.opened_ms):
            # A copy: the one given is part of a record that others have still to hear.
            self._minute = msgspec.structs.replace(part)
        self._settled, self._last = None, (part.close, part.closing_ask)

    def has_ended(self, now_ms: int) -> bool:
        """Whether there is something that `close_until` closes."""
        minute = self._minute
        if minute is not None and minute.opened_ms + MINUTE_MS <= now_ms:
            return True
        ended = [name for name, candle in self._coarser.items() if candle.opened_ms + COARSER[name] <= now_ms]
        return bool(ended)

    def close_until(self, now_ms: int) -> Iterator[Closed]:
        """Close what has ended by now."""
        minute = self._minute
        if minute is not None and minute.opened_ms + MINUTE_MS <= now_ms:
            self._minute = None
            yield from self.add_minute(minute)
        yield from self._close_coarser(now_ms)

    def halt(self, reopens_ms: int) -> Iterator[Closed]:
        """Until then no time passes for candles, so what ends before has ended."""
        for timeframe, candle in self.close_until(reopens_ms):
            if timeframe in COARSER:
                self._early[timeframe] = candle.opened_ms
            yield timeframe, candle

    def reopen(self, time_ms: int) -> Iterator[tuple[str, int]]:
        """A session did open where none was to: what had ended early forms again. Yields which."""
        for timeframe, opened_ms in list(self._early.items()):
            ended = self._ended[timeframe]
            if time_ms >= opened_ms + COARSER[timeframe] or ended.opened_ms != opened_ms:
                del self._early[timeframe]
            elif time_ms >= opened_ms:
                # A copy: it may be waiting to be written in a thread.
                self._coarser[timeframe] = msgspec.structs.replace(ended)
                del self._early[timeframe], self._ended[timeframe]
                yield timeframe, opened_ms

    def close_again(self, timeframe: str, opened_ms: int, *, is_early: bool = False) -> Iterator[Closed]:
        """It is known from elsewhere that the intervals up to this one were closed."""
        candle = self._coarser.get(timeframe)
        if candle is not None and candle.opened_ms <= opened_ms:
            self._ended[timeframe] = self._coarser.pop(timeframe)
            if is_early:
                self._early[timeframe] = opened_ms
            yield timeframe, candle

    def is_early(self, timeframe: str) -> bool:
        """Whether its last candle ended before its time."""
        return timeframe in self._early

    def unfinished(self, timeframe: str) -> PriceBar | None:
        """What the closed minutes of an interval make so far that is not closed."""
        return self._coarser.get(timeframe)

    def fill(self, opened_ms: int) -> Iterator[Closed]:
        """A minute went by without a tick while the source was alive: a flat candle."""
        forming, ended = self._minute, self._ended.get("1m")
        if self._last is None or self._is_closed("1m", opened_ms):
            return
        if forming is None:
            price, ask = self._last
        elif ended is not None and opened_ms < forming.opened_ms:
            price, ask = ended.close, ended.closing_ask
        else:
            return
        yield from self._close_coarser(opened_ms)
        yield from self.add_minute(
            PriceBar(opened_ms, price, price, price, price, 0.0, ask, ask, self.source)
        )

    def resume(self, minute: PriceBar) -> None:
        """Take a closed minute from the store, so that the coarser candles go on from it."""
        for _ in self.add_minute(minute):
            pass
        # A last quote (`resume_forming`) knows better.
        self._last = minute.close, minute.closing_ask

    def resume_all(self, minutes: Sequence[PriceBar]) -> None:
        """What `resume` comes to with each of them, the oldest first, in a tenth of the time. Of an interval
        that began and ended before the last two nothing is left."""
        if self._ended or self._coarser or self._minute is not None or not minutes:
            for minute in minutes:
                self.resume(minute)
            return
        for minute in minutes:
            minute.volume = round(minute.volume, VOLUME_DECIMALS)
        forming: list[tuple[int, str, PriceBar]] = []
        until_ms = minutes[-1].opened_ms + MINUTE_MS
        for timeframe, span_ms in COARSER.items():
            last = self._last_interval(minutes, span_ms)
            if last[0].opened_ms - last[0].opened_ms % span_ms + span_ms > until_ms:
                forming.append((last[0].opened_ms, timeframe, whole(last, span_ms)))
                last = self._last_interval(minutes[: len(minutes) - len(last)], span_ms)
            if last:
                self._ended[timeframe] = whole(last, span_ms)
        # In this order they close: it is that in which they began.
        self._coarser = {name: candle for _, name, candle in sorted(forming, key=itemgetter(0))}
        self._settled, self._ended["1m"] = None, minutes[-1]
        self._last = minutes[-1].close, minutes[-1].closing_ask

    def _last_interval(self, minutes: Sequence[PriceBar], span_ms: int) -> Sequence[PriceBar]:
        if not minutes:
            return minutes
        opened_ms = interval_start(minutes[-1].opened_ms, span_ms)
        return minutes[bisect_left(minutes, opened_ms, key=attrgetter("opened_ms")) :]

    def resume_forming(self, minute: PriceBar | None, price: float, ask: float) -> None:
        """Take the minute that formed when the store was last written, and the last price and ask."""
        if minute is not None and not self._is_closed("1m", minute.opened_ms):
            self._minute, self._settled = minute, None
        self._last = price, ask

    def forming(self, timeframe: str) -> PriceBar | None:
        minute = self._minute
        if timeframe == "1m" or minute is None:
            return minute if timeframe == "1m" else self._coarser.get(timeframe)
        opened_ms = interval_start(minute.opened_ms, TIMEFRAMES[timeframe])
        if self._is_closed(timeframe, opened_ms):
            return None
        candle = self._coarser.get(timeframe)
        if candle is None or candle.opened_ms != opened_ms:
            return minute.opened_at(opened_ms)
        candle = msgspec.structs.replace(candle)
        candle.take(minute)
        return candle

    def latest(self, timeframe: str) -> PriceBar | None:
        """The one that forms, or else the last that was closed."""
        return self.forming(timeframe) or self._ended.get(timeframe)

    def _is_closed(self, timeframe: str, opened_ms: int) -> bool:
        ended = self._ended.get(timeframe)
        return ended is not None and opened_ms <= ended.opened_ms

    def _merge(self, minute: PriceBar) -> Iterator[Closed]:
        """Add a minute to what is coarser. A minute that was missed belongs to its hour even if that is
        closed; as it may be waiting to be written in a thread, the hour is replaced rather than changed."""
        for timeframe, span_ms in COARSER.items():
            opened_ms = interval_start(minute.opened_ms, span_ms)
            ended, forming = self._ended.get(timeframe), self._coarser.get(timeframe)
            if ended is not None and ended.opened_ms == opened_ms:
                self._ended[timeframe] = completed = msgspec.structs.replace(ended)
                completed.take(minute)
                yield timeframe, completed
            elif forming is not None and forming.opened_ms == opened_ms:
                forming.take(minute)
            else:
                self._coarser[timeframe] = minute.opened_at(opened_ms)

    def _close_coarser(self, now_ms: int) -> Iterator[Closed]:
        for timeframe, candle in list(self._coarser.items()):
            if candle.opened_ms + COARSER[timeframe] <= now_ms:
                self._ended[timeframe] = self._coarser.pop(timeframe)
                yield timeframe, candle
