"""Which stored minute ends a signal. Most signals are passed over by looking at how far all minutes together
went. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal

from signals_feed.judging import MINUTE_MS, Exit, Levels, Minute, by_minute, is_reached, is_stopped


class Minutes:
    """Those of one symbol, in order."""

    def __init__(self, minutes: Sequence[Minute]) -> None:
        self._minutes = minutes
        self._opened = [minute.opened_ms for minute in minutes]
        self._bids = _extremes([(minute.bid_low, minute.bid_high) for minute in minutes])
        self._asks = _extremes([(minute.ask_low, minute.ask_high) for minute in minutes])

    def first_exit(self, levels: Levels) -> tuple[Exit, Minute] | None:
        begin = bisect_left(self._opened, levels.since_ms)
        if begin == len(self._opened) or not self._may_end(levels, begin):
            return None
        for minute in self._minutes[begin:]:
            if exit_ := by_minute(levels, minute):
                return exit_, minute
        return None

    def _may_end(self, levels: Levels, begin: int) -> bool:
        if self._opened[-1] + MINUTE_MS > levels.ends_ms:
            return True
        lowest, highest = (self._bids if levels.is_buy else self._asks)[begin]
        worst, best = (lowest, highest) if levels.is_buy else (highest, lowest)
        if worst is None or best is None:
            return False
        return is_stopped(levels, worst) or is_reached(levels, best)


Range = tuple[Decimal | None, Decimal | None]


def _extremes(ranges: Sequence[Range]) -> list[Range]:
    """For each place the lowest and the highest from there to the end."""
    found: list[Range] = []
    lowest: Decimal | None = None
    highest: Decimal | None = None
    for low, high in reversed(ranges):
        if low is not None:
            lowest = low if lowest is None else min(lowest, low)
        if high is not None:
            highest = high if highest is None else max(highest, high)
        found.append((lowest, highest))
    return found[::-1]
