"""Bars of a venue's history, checked before they count as closed minutes. Pure."""

from __future__ import annotations

from math import isfinite

from market.engine.checks import TOO_HIGH
from market.prices.candles import Candle
from market.prices.timeframes import MINUTE_MS, interval_start

# Of a longer gap the last three days are filled: that is a weekend and a day more.
LONGEST_MS = 3 * 24 * 60 * MINUTE_MS
# A day of such minutes fits the sixteen digits that the database has.
TOO_MUCH = 1e12


def whole_minutes(start_ms: int, end_ms: int) -> tuple[int, int]:
    """What to ask for: minutes that have ended, none from longer ago than we fill."""
    end_ms = interval_start(end_ms, MINUTE_MS)
    first_ms = interval_start(start_ms + MINUTE_MS - 1, MINUTE_MS)
    return max(first_ms, end_ms - LONGEST_MS), end_ms


class Minutes:
    """Takes the bars that open from `start_ms` on and end by `end_ms`, oldest first."""

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.candles: list[Candle] = []
        self.refused = 0
        """Bars that make no sense, came out of order or were not asked for."""
        self._next_ms = start_ms
        self._end_ms = end_ms

    def add(self, bar: Candle) -> None:
        if bar.opened_ms == self._end_ms:
            # It may still be forming, which is no fault of the venue.
            return
        is_asked_for = self._next_ms <= bar.opened_ms < self._end_ms and bar.opened_ms % MINUTE_MS == 0
        if is_asked_for and _makes_sense(bar):
            self.candles.append(bar)
            self._next_ms = bar.opened_ms + MINUTE_MS
        else:
            self.refused += 1


def _makes_sense(bar: Candle) -> bool:
    numbers = bar.open, bar.high, bar.low, bar.close, bar.ask_high, bar.ask_low, bar.volume
    return (
        all(isfinite(number) for number in numbers)
        and 0 < bar.low <= min(bar.open, bar.close)
        and max(bar.open, bar.close) <= bar.high <= bar.ask_high < TOO_HIGH
        and bar.low <= bar.ask_low <= bar.ask_high
        and 0 <= bar.volume < TOO_MUCH
    )
