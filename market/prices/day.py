"""The last 24 hours of an instrument, from its minutes."""

from array import array
from collections.abc import Sequence

import msgspec

from core.times import MINUTE_MS

from .candles import DAY_MS, PriceBar, interval_start
from .order_flow import UNITS

MINUTES = DAY_MS // MINUTE_MS
NO_HIGH, NO_LOW = float("-inf"), float("inf")


class DayStatistics(msgspec.Struct, frozen=True, gc=False):
    open: float
    high: float
    low: float
    last: float
    change: float
    """Since the open."""
    change_percent: float
    volume: float


class RollingDay:
    """The last 1,440 closed minutes in a ring, a slot each, in whatever order they come."""

    def __init__(self, digits: int) -> None:
        self._digits = digits
        # Arrays, because as candles the days of 500 instruments would take 200 MB.
        self._opens, self._closes, self._volumes = (array("d", [0.0]) * MINUTES for _ in range(3))
        self._highs, self._lows = array("d", [NO_HIGH]) * MINUTES, array("d", [NO_LOW]) * MINUTES
        self._until_ms = 0
        """The end of the newest minute that has a slot."""
        self._first_ms, self._last_ms = 0, -DAY_MS
        self._units = 0
        self._high, self._low = NO_HIGH, NO_LOW
        self._is_sure = True
        """False when a minute went that may have been the highest or the lowest."""

    def add(self, minute: PriceBar) -> None:
        """Take a closed minute. Coming again it is replaced; one from before the day is left out."""
        opened_ms = minute.opened_ms
        self._pass(opened_ms + MINUTE_MS)
        if opened_ms < self._until_ms - DAY_MS:
            return
        slot = _slot(opened_ms)
        self._forget(slot)
        self._opens[slot], self._closes[slot], self._volumes[slot] = minute.open, minute.close, minute.volume
        self._highs[slot], self._lows[slot] = minute.high, minute.low
        self._units += round(minute.volume * UNITS)
        self._high, self._low = max(self._high, minute.high), min(self._low, minute.low)
        self._first_ms, self._last_ms = min(self._first_ms, opened_ms), max(self._last_ms, opened_ms)

    def add_all(self, minutes: Sequence[PriceBar]) -> None:
        """Take closed minutes of which the oldest is first, where there are none yet."""
        if not minutes:
            return
        if self._until_ms:
            for minute in minutes:
                self.add(minute)
            return
        self._last_ms = minutes[-1].opened_ms
        self._until_ms, self._is_sure = self._last_ms + MINUTE_MS, False
        within = [minute for minute in minutes if minute.opened_ms >= self._until_ms - DAY_MS]
        for minute in within:
            slot = _slot(minute.opened_ms)
            self._opens[slot], self._closes[slot] = minute.open, minute.close
            self._highs[slot], self._lows[slot] = minute.high, minute.low
            self._volumes[slot] = minute.volume
        self._units = sum([round(minute.volume * UNITS) for minute in within])

    def statistics(self, now_ms: int, forming: PriceBar | None = None) -> DayStatistics | None:
        """Of the 1,440 minutes before this one, and of the one that forms if it is given."""
        self._pass(interval_start(now_ms, MINUTE_MS))
        whole = self._closed()
        if forming is not None and forming.opened_ms >= self._until_ms - DAY_MS:
            if whole is None:
                whole = forming
            else:
                whole.take(forming)
        if whole is None:
            return None
        change = round(whole.close - whole.open, self._digits)
        percent = round(100 * (whole.close - whole.open) / whole.open, 3)
        return DayStatistics(whole.open, whole.high, whole.low, whole.close, change, percent, whole.volume)

    def _closed(self) -> PriceBar | None:
        """The closed minutes as one candle."""
        oldest_ms = self._until_ms - DAY_MS
        if self._last_ms < oldest_ms:
            return None
        self._first_ms = max(self._first_ms, oldest_ms)
        while self._highs[_slot(self._first_ms)] == NO_HIGH:
            self._first_ms += MINUTE_MS
        if not self._is_sure:
            self._high, self._low, self._is_sure = max(self._highs), min(self._lows), True
        opened, closed = self._opens[_slot(self._first_ms)], self._closes[_slot(self._last_ms)]
        return PriceBar(self._first_ms, opened, self._high, self._low, closed, self._units / UNITS, 0, 0)

    def _pass(self, until_ms: int) -> None:
        """Slots that are free again with the time lose the minute of a day ago."""
        begun_ms = self._until_ms or until_ms
        for ms in range(max(begun_ms, until_ms - DAY_MS), until_ms, MINUTE_MS):
            self._forget(_slot(ms))
        self._until_ms = max(self._until_ms, until_ms)

    def _forget(self, slot: int) -> None:
        if self._highs[slot] >= self._high or self._lows[slot] <= self._low:
            self._is_sure = False
        self._units -= round(self._volumes[slot] * UNITS)
        self._highs[slot], self._lows[slot], self._volumes[slot] = NO_HIGH, NO_LOW, 0.0


def _slot(opened_ms: int) -> int:
    return opened_ms // MINUTE_MS % MINUTES
