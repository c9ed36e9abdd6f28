"""What is watched of one symbol: its signals, when they end, and its last ticks. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf

from market.prices.records import Taken
from signals_feed.judging import MINUTE_MS, Minute

from .side import Side, Watched

# For signals that are heard of only after the next tick: three seconds of a hundred a second.
RECENT = 300
_numbers = count()


class Book:
    __slots__ = ("_ends", "_most", "buys", "dropped_ms", "ends_ms", "recent", "sells")

    def __init__(self, most: float = RECENT) -> None:
        self._most = most
        self.buys, self.sells = Side(1), Side(-1)
        self.recent: deque[Taken] = deque()
        self.dropped_ms: int | None = None
        """The time of the last tick that is remembered no more."""
        self.ends_ms: float = inf
        """When the first of them ends."""
        self._ends: list[tuple[int, int, Watched]] = []

    def remember(self, most: int) -> None:
        """So many ticks from now on."""
        self._most = most
        while len(self.recent) > most:
            self.dropped_ms = self.recent.popleft().time_ms

    def side(self, watched: Watched) -> Side:
        return self.buys if watched.levels.is_buy else self.sells

    def add(self, watched: Watched) -> None:
        self.side(watched).add(watched)
        heappush(self._ends, (watched.levels.ends_ms, next(_numbers), watched))
        self.ends_ms = self._ends[0][0]

    def remove(self, watched: Watched) -> None:
        self.side(watched).remove(watched)

    def see(self, minute: Minute) -> list[Watched]:
        """How far the prices of a minute went that nobody saw tick by tick; returns whom it may close."""
        is_end = minute.opened_ms + MINUTE_MS > self.ends_ms
        found = []
        for side, low, high in (
            (self.buys, minute.bid_low, minute.bid_high),
            (self.sells, minute.ask_low, minute.ask_high),
        ):
            if low is not None and high is not None:
                prices = side.sign * float(low), side.sign * float(high)
                found += side.see_minute(minute.opened_ms, prices, is_end)
        return found

    def take(self, tick: Taken) -> list[Watched]:
        """A tick; returns whom it may close, who are watched no more."""
        recent = self.recent
        if len(recent) >= self._most:
            self.dropped_ms = recent.popleft().time_ms
        recent.append(tick)
        buys, sells = self.buys, self.sells
        bid, ask = tick.bid, -tick.ask
        met: list[Watched] = []
        if buys.live and buys.see(bid):
            met += buys.met(bid)
        if sells.live and sells.see(ask):
            met += sells.met(ask)
        return met + list(self.ended(tick.time_ms)) if tick.time_ms >= self.ends_ms else met

    def ended(self, at_ms: int) -> Iterator[Watched]:
        """Those that are over by then; they are watched no more."""
        ends = self._ends
        while ends and (ends[0][0] <= at_ms or not ends[0][2].is_live):
            watched = heappop(ends)[2]
            if watched.is_live:
                self.remove(watched)
                yield watched
        self.ends_ms = ends[0][0] if ends else inf
