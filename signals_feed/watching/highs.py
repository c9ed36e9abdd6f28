"""The highest value since each of many moments, at the cost of one comparison a value. Pure."""

from __future__ import annotations

from bisect import bisect_right
from math import inf


class Highs:
    """Values fall into spans that begin where somebody started to look. A span that a later one exceeds can
    be joined to it: from its beginning on, the later value is the highest as well. So the values of the
    spans fall, and only the last is ever compared."""

    __slots__ = ("_marks", "_starts", "values")

    def __init__(self) -> None:
        self._marks = 0
        self._starts = [0]
        self.values = [-inf]

    def mark(self) -> int:
        """From here on."""
        if self.values[-1] != -inf:
            self._marks += 1
            self._starts.append(self._marks)
            self.values.append(-inf)
        return self._starts[-1]

    def rise(self, value: float) -> None:
        """One that is higher than the last of `values`."""
        values, starts = self.values, self._starts
        while len(values) > 1 and values[-2] <= value:
            values.pop()
            starts.pop()
        values[-1] = value

    def take(self, value: float) -> None:
        if value > self.values[-1]:
            self.rise(value)

    def since(self, mark: int) -> float:
        """-inf if nothing came since."""
        return self.values[bisect_right(self._starts, mark) - 1]
