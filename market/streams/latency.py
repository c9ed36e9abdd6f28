"""How long writes took, minute by minute, and the quantiles of the last full minute."""

from collections import defaultdict
from itertools import accumulate

from market.prices.candles import MINUTE_MS, interval_start

QUANTILES = (0.5, 0.95, 0.99)
# So that a minute is at most so many numbers, whatever a clock does.
LONGEST_MS = 60_000
# A Counter would take three times as long for each.
Counts = defaultdict[int, int]


class WriteLatency:
    """Whole milliseconds are counted as they are, so nothing is estimated."""

    def __init__(self) -> None:
        self._start_ms = self._end_ms = 0
        self._count = self._sum_ms = 0
        """Before this minute."""
        self._this, self._last = Counts(int), Counts(int)

    @property
    def count(self) -> int:
        """Since the start."""
        return self._count + sum(self._this.values())

    @property
    def sum_ms(self) -> int:
        return self._sum_ms + sum(took_ms * number for took_ms, number in self._this.items())

    def add(self, since_ms: int, now_ms: int) -> None:
        """Clocks of two machines may differ a little: nothing took less than no time."""
        if not self._start_ms <= now_ms < self._end_ms:
            self._turn(now_ms)
        took_ms = now_ms - since_ms
        if not 0 <= took_ms <= LONGEST_MS:
            took_ms = 0 if took_ms < 0 else LONGEST_MS
        self._this[took_ms] += 1

    def quantiles(self, now_ms: int) -> dict[float, int]:
        """Of the last full minute; empty where nothing was measured in it."""
        if not self._start_ms <= now_ms < self._end_ms:
            self._turn(now_ms)
        return quantiles(self._last)

    def _turn(self, now_ms: int) -> None:
        self._count, self._sum_ms = self.count, self.sum_ms
        start_ms = interval_start(now_ms, MINUTE_MS)
        self._last = self._this if start_ms == self._end_ms else Counts(int)
        self._this = Counts(int)
        self._start_ms, self._end_ms = start_ms, start_ms + MINUTE_MS


def quantiles(counts: Counts) -> dict[float, int]:
    """The smallest value that so large a share of all does not exceed."""
    values = sorted(counts)
    upto = list(accumulate(counts[value] for value in values))
    return {
        share: next(value for value, number in zip(values, upto, strict=True) if number >= share * upto[-1])
        for share in QUANTILES
        if values
    }
