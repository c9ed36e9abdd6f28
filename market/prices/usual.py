"""What is usual: mean and deviation of the last volumes, the median of counted values. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import accumulate
from math import sqrt


class Usual:
    """Mean and standard deviation of the last so many volumes. They are whole numbers, because sums of
    those stay exact however long it runs."""

    __slots__ = ("_many", "_squares", "_sum", "_volumes")

    def __init__(self, many: int) -> None:
        self._many = many
        self._volumes: deque[int] = deque()
        self._sum = 0
        self._squares = 0

    def add(self, volume: int) -> None:
        self._volumes.append(volume)
        self._sum += volume
        self._squares += volume * volume
        if len(self._volumes) > self._many:
            oldest = self._volumes.popleft()
            self._sum -= oldest
            self._squares -= oldest * oldest

    def strength(self, volume: int) -> float | None:
        """How many (sample) standard deviations it is above the mean. None until so many are known, and
        while they are all alike."""
        count = len(self._volumes)
        spread = count * self._squares - self._sum * self._sum
        if count < self._many or not spread:
            return None
        return (count * volume - self._sum) / sqrt(spread * count / (count - 1))


def median(counts: dict[int, int]) -> float:
    """Of values of which it is known how often each came; at least one came."""
    values = sorted(counts)
    up_to = list(accumulate(counts[value] for value in values))
    lower, upper = (bisect_right(up_to, place) for place in ((up_to[-1] - 1) // 2, up_to[-1] // 2))
    return (values[lower] + values[upper]) / 2
