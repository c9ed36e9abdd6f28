"""Closed minutes from ticks, folded a minute at a time: what CandleBuilder makes of them one by one."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple, cast

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from market.engine.files.bars import Bar
from market.prices.candles import DAY_MS, VOLUME_DECIMALS, PriceBar, interval_start
from market.prices.records import Tick

# A file that says nothing for a longer time of open market lacks ticks: a market is not that quiet.
LONGEST_QUIET_MS = DAY_MS


class FileEnd(NamedTuple):
    """The minute in which a file ended, and its last tick."""

    minute: PriceBar
    tick: Tick


class FileMinutes:
    """The minutes of one file."""

    def __init__(self, facts: InstrumentFacts, *, mid: bool, before: FileEnd | None = None) -> None:
        """`before` is where the file before this one ended."""
        self._facts = facts
        self._mid = mid
        self._before = before
        self._forming: PriceBar | None = None
        self._last: Tick | None = None
        self.gaps = 0
        """Times without ticks that were too long to be filled."""

    @property
    def forming_ms(self) -> int | None:
        return None if self._forming is None else self._forming.opened_ms

    def take(self, ticks: list[Tick]) -> Iterator[PriceBar]:
        """Good ticks in order. Yields the minutes that they close, and the flat ones between."""
        times, prices = [tick.time_ms for tick in ticks], self._prices(ticks)
        asks, volumes = [tick.ask for tick in ticks], self._volumes(ticks)
        if times and self._before is not None:
            self._go_on(self._before, times[0])
        start = 0
        while start < len(ticks):
            opened_ms = interval_start(times[start], MINUTE_MS)
            end = bisect_left(times, opened_ms + MINUTE_MS, start)
            minute = self._forming
            if minute is None or minute.opened_ms != opened_ms:
                yield from self._close_before(opened_ms)
                price, ask = prices[start], asks[start]
                minute = self._forming = PriceBar(opened_ms, price, price, price, price, 0.0, ask, ask)
            self._last = ticks[end - 1]
            self._add(minute, prices[start:end], asks[start:end], volumes[start:end])
            start = end

    def end(self) -> FileEnd | None:
        """Close the forming minute: nothing more comes."""
        minute = self._close()
        return None if minute is None or self._last is None else FileEnd(minute, self._last)

    def _go_on(self, before: FileEnd, first_ms: int) -> None:
        """Where the file before ended, unless this one is of another time."""
        self._before = None
        if before.tick.time_ms <= first_ms:
            self._forming, self._last = before

    def _prices(self, ticks: list[Tick]) -> list[float]:
        if self._mid:
            # Rounded, as live quotes are.
            digits = self._facts.digits
            return [(round(tick.bid, digits) + round(tick.ask, digits)) / 2 for tick in ticks]
        return [tick.bid for tick in ticks]

    def _volumes(self, ticks: list[Tick]) -> list[float]:
        if self._facts.volume_kind == "ticks":
            return [1.0] * len(ticks)
        return [tick.volume for tick in ticks]

    def _add(
        self, minute: PriceBar, prices: Sequence[float], asks: Sequence[float], volumes: Sequence[float]
    ) -> None:
        minute.high, minute.low = max(minute.high, *prices), min(minute.low, *prices)
        minute.close = prices[-1]
        # From left to right, as the builder adds them; `sum` of later Pythons does not.
        minute.volume = reduce(add, volumes, minute.volume)
        minute.ask_high, minute.ask_low = max(minute.ask_high, *asks), min(minute.ask_low, *asks)

    def _close_before(self, opened_ms: int) -> Iterator[PriceBar]:
        closed = self._close()
        if closed is None or self._last is None:
            return
        yield closed
        if closed.opened_ms + MINUTE_MS == opened_ms:
            return
        quiet = list(self._facts.hours.sessions_between(closed.opened_ms + MINUTE_MS, opened_ms))
        if sum(closes_ms - opens_ms for opens_ms, closes_ms in quiet) > LONGEST_QUIET_MS:
            self.gaps += 1
            return
        price, ask = closed.close, round(self._last.ask, self._facts.digits)
        for opens_ms, closes_ms in quiet:
            for flat_ms in range(opens_ms, closes_ms, MINUTE_MS):
                yield PriceBar(flat_ms, price, price, price, price, 0.0, ask, ask)

    def _close(self) -> PriceBar | None:
        minute, self._forming = self._forming, None
        if minute is not None:
            # Once a minute rather than once a tick: the highest of rounded prices is the highest, rounded.
            for name in ("open", "high", "low", "close", "ask_high", "ask_low"):
                setattr(minute, name, round(getattr(minute, name), self._facts.digits))
            minute.volume = round(minute.volume, VOLUME_DECIMALS)
        return minute


class BarMinutes(FileMinutes):
    """Those of a file whose lines are minutes. One that comes again is taken as it comes last."""

    def take(self, ticks: list[Tick]) -> Iterator[PriceBar]:
        if ticks and self._before is not None:
            self._go_on(self._before, ticks[0].time_ms)
        for bar in cast("list[Bar]", ticks):
            if self._forming is None or self._forming.opened_ms != bar.time_ms:
                yield from self._close_before(bar.time_ms)
            # How many ticks it was made of is not known.
            volume = 0.0 if self._facts.volume_kind == "ticks" else bar.volume
            prices = bar.open, bar.ask, bar.bid, bar.close
            self._forming = PriceBar(bar.time_ms, *prices, volume, bar.ask, bar.bid)
            self._last = Tick(bar.symbol, bar.close, bar.close, bar.time_ms)
