"""The active signals of one symbol and direction, by their levels: a tick that meets none of them is compared
with two numbers, however many there are. Pure.

Prices are those of the exit side; those of sells are negative, so that up is good for both."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from uuid import UUID

from signals_feed.judging import Levels

from .highs import Highs

# Signals that were closed elsewhere stay in the heaps until they come to the top, or until there are so many.
MOST_DEAD = 64
Heap = list[tuple[float, int, "Watched"]]
_numbers = count()


class Watched:
    """An active signal. The extremes are those from before it was watched here."""

    __slots__ = ("best", "id", "is_live", "levels", "mark", "since_ms", "symbol", "worst")

    def __init__(self, id_: UUID, symbol: str, levels: Levels) -> None:
        self.id = id_
        self.symbol = symbol
        self.levels = levels
        self.is_live = True
        self.mark = (0, 0)
        self.best, self.worst = -inf, inf
        self.since_ms = 0
        """From when on its extremes are known; 0: from its publication."""

    def see(self, price: float) -> None:
        self.best, self.worst = max(self.best, price), min(self.worst, price)


class Side:
    __slots__ = (
        *("_dead", "_highs", "_lows", "_stops", "_targets"),
        *("live", "sign", "stop_at", "target_at", "youngest_ms"),
    )

    def __init__(self, sign: int) -> None:
        self.sign = sign
        self.live = 0
        self.stop_at, self.target_at = -inf, inf
        self.youngest_ms: float = -inf
        """No signal was published later."""
        self._dead = 0
        self._stops: Heap = []
        self._targets: Heap = []
        self._highs, self._lows = Highs(), Highs()

    def add(self, watched: Watched) -> None:
        number = next(_numbers)
        heappush(self._stops, (-self.sign * float(watched.levels.stop), number, watched))
        heappush(self._targets, (self.sign * float(watched.levels.target), number, watched))
        watched.mark = self._highs.mark(), self._lows.mark()
        watched.is_live = True
        self.youngest_ms = max(self.youngest_ms, watched.levels.since_ms)
        self.live += 1
        self._look()

    def remove(self, watched: Watched) -> None:
        if watched.is_live:
            watched.is_live = False
            self.live -= 1
            self._dead += 1
            if self._dead > MOST_DEAD + self.live:
                self._bury()
            self._look()

    def see(self, price: float) -> bool:
        """Take the price of a tick; whether it meets a level."""
        if price > self._highs.values[-1]:
            self._highs.rise(price)
        if -price > self._lows.values[-1]:
            self._lows.rise(-price)
        return price <= self.stop_at or price >= self.target_at

    def see_minute(self, opened_ms: int, prices: tuple[float, float], is_end: bool) -> list[Watched]:
        """Take how far the prices of a minute went; whom it may close. It says nothing of younger signals."""
        if opened_ms >= self.youngest_ms:
            is_met = [self.see(price) for price in prices]
            return self.everybody() if is_end or any(is_met) else []
        older = [each for each in self.everybody() if each.levels.since_ms <= opened_ms]
        for watched in older:
            for price in prices:
                watched.see(price)
        return older

    def everybody(self) -> list[Watched]:
        return list(dict.fromkeys(watched for _, _, watched in self._stops if watched.is_live))

    def met(self, price: float) -> Iterator[Watched]:
        """Those whose level it meets; they are watched no more."""
        while price <= self.stop_at:
            watched = self._stops[0][2]
            self.remove(watched)
            yield watched
        while price >= self.target_at:
            watched = self._targets[0][2]
            self.remove(watched)
            yield watched

    def extremes(self, watched: Watched) -> tuple[float, float]:
        """Best and worst price of its exit side, as they were quoted."""
        best = max(watched.best, self._highs.since(watched.mark[0]))
        worst = min(watched.worst, -self._lows.since(watched.mark[1]))
        return self.sign * best, self.sign * worst

    def _look(self) -> None:
        self.stop_at = -_top(self._stops)
        self.target_at = _top(self._targets)

    def _bury(self) -> None:
        for heap in (self._stops, self._targets):
            heap[:] = [entry for entry in heap if entry[2].is_live]
            heapify(heap)
        self._dead = 0


def _top(heap: Heap) -> float:
    while heap and not heap[0][2].is_live:
        heappop(heap)
    return heap[0][0] if heap else inf
