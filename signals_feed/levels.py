"""The levels of active signals, indexed: however many there are, a tick that meets none of them costs two
comparisons for each direction.

Prices are those of the exit side. Those of sells are negated, so that higher is better for both."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf, isfinite
from uuid import UUID

from core.times import MINUTE_MS
from market.prices import TickAccepted

from .exits import SignalLevels
from .record import MINUTES, VENUES
from .rules import SeenExtremes, StoredMinute, exact_price


class Highs:
    """Values fall into spans that begin where an observer started to look. A span that a later one exceeds
    can be joined to it: from its beginning on, the later value is the highest as well. So the values of the
    spans fall, and only the last is ever compared."""

    __slots__ = ("_marks", "_starts", "values")

    def __init__(self) -> None:
        self._marks = 0
        self._starts = [0]
        self.values = [-inf]

    def mark(self) -> int:
        """Start a span here."""
        if self.values[-1] != -inf:
            self._marks += 1
            self._starts.append(self._marks)
            self.values.append(-inf)
        return self._starts[-1]

    def rise(self, value: float) -> None:
        """Take a value that is higher than the last of `values`."""
        values, starts = self.values, self._starts
        while len(values) > 1 and values[-2] <= value:
            values.pop()
            starts.pop()
        values[-1] = value

    def since(self, mark: int) -> float:
        """The highest value since the mark; -inf if there is none."""
        return self.values[bisect_right(self._starts, mark) - 1]


# Removed signals stay in the heaps until they reach the top, or until there are this many.
MOST_REMOVED = 64
Heap = list[tuple[float, int, "Watched"]]
_numbers = count()


class Watched:
    """An active signal. `best` and `worst` are the extremes from before it was watched here."""

    __slots__ = (
        *("best", "id", "is_buy", "is_watched", "levels", "mark", "since_ms", "symbol", "worst"),
        "heard_since",
    )

    def __init__(self, id_: UUID, symbol: str, levels: SignalLevels) -> None:
        self.id = id_
        self.symbol = symbol
        self.levels = levels
        self.is_buy = levels.direction == "buy"
        self.is_watched = False
        self.mark = (0, 0)
        self.heard_since = 0
        self.best, self.worst = -inf, inf
        self.since_ms = 0
        """The time since which its extremes are known; 0 means since its publication."""

    def see(self, price: float) -> None:
        self.best, self.worst = max(self.best, price), min(self.worst, price)

    def see_quote(self, bid: float, ask: float) -> None:
        self.see(bid if self.is_buy else -ask)


class LevelIndex:
    __slots__ = (
        *("_removed", "_highs", "_lows", "stops", "targets"),
        *("live", "sign", "stop_at", "target_at", "youngest_ms"),
    )

    def __init__(self, sign: int) -> None:
        self.sign = sign
        self.live = 0
        self.stop_at, self.target_at = -inf, inf
        self.youngest_ms: float = -inf
        """The time of the latest publication."""
        self._removed = 0
        self.stops: Heap = []
        self.targets: Heap = []
        self._highs, self._lows = Highs(), Highs()

    def add(self, watched: Watched) -> None:
        number = next(_numbers)
        heappush(self.stops, (-self.sign * float(watched.levels.stop), number, watched))
        heappush(self.targets, (self.sign * float(watched.levels.target), number, watched))
        watched.mark = self._highs.mark(), self._lows.mark()
        watched.is_watched = True
        self.youngest_ms = max(self.youngest_ms, watched.levels.since_ms)
        self.live += 1
        self._look()

    def remove(self, watched: Watched) -> None:
        if watched.is_watched:
            watched.is_watched = False
            self.live -= 1
            self._removed += 1
            if self._removed > MOST_REMOVED + self.live:
                self._drop_removed()
            self._look()

    def see(self, price: float) -> bool:
        """Take the price of a tick and say whether it meets a level."""
        if price > self._highs.values[-1]:
            self._highs.rise(price)
        if -price > self._lows.values[-1]:
            self._lows.rise(-price)
        return price <= self.stop_at or price >= self.target_at

    def see_minute(self, opened_ms: int, prices: tuple[float, float], is_end: bool) -> list[Watched]:
        """Take the extremes of a minute and return the signals it may close; it judges no younger ones."""
        if opened_ms >= self.youngest_ms:
            is_met = [self.see(price) for price in prices]
            return self.all_watched() if is_end or any(is_met) else []
        older = [each for each in self.all_watched() if each.levels.since_ms <= opened_ms]
        for watched in older:
            for each in prices:
                watched.see(each)
        return older

    def all_watched(self) -> list[Watched]:
        return list(dict.fromkeys(watched for _, _, watched in self.stops if watched.is_watched))

    def met(self, price: float) -> Iterator[Watched]:
        """Stop watching the signals whose level the price meets, and yield them."""
        while price <= self.stop_at:
            watched = self.stops[0][2]
            self.remove(watched)
            yield watched
        while price >= self.target_at:
            watched = self.targets[0][2]
            self.remove(watched)
            yield watched

    def extremes(self, watched: Watched) -> tuple[float, float]:
        """The best and the worst price of its exit side, as quoted."""
        best = max(watched.best, self._highs.since(watched.mark[0]))
        worst = min(watched.worst, -self._lows.since(watched.mark[1]))
        return self.sign * best, self.sign * worst

    @property
    def reach(self) -> tuple[float, float, int]:
        """Other than before once the extremes of any signal are."""
        return self._highs.values[-1], self._lows.values[-1], len(self.stops)

    def _look(self) -> None:
        self.stop_at = -_top(self.stops)
        self.target_at = _top(self.targets)

    def _drop_removed(self) -> None:
        for heap in (self.stops, self.targets):
            heap[:] = [entry for entry in heap if entry[2].is_watched]
            heapify(heap)
        self._removed = 0


def _top(heap: Heap) -> float:
    while heap and not heap[0][2].is_watched:
        heappop(heap)
    return heap[0][0] if heap else inf


# Ticks kept for signals that are read late: three seconds at a hundred a second.
RECENT = 300


class SymbolWatch:
    __slots__ = (
        *("_ends", "_most", "buys", "ends_ms", "is_awaited", "recent", "sells"),
        *("_dropped", "_feed", "_heard", "_minute_ms", "_source", "changes"),
    )

    def __init__(self, most: float = RECENT) -> None:
        self._most = most
        self.buys, self.sells = LevelIndex(1), LevelIndex(-1)
        self.recent: deque[TickAccepted] = deque()
        self._dropped: TickAccepted | None = None
        self.ends_ms: float = inf
        """The earliest end of a watched signal."""
        self.is_awaited = False
        """Every tick counts for some signal."""
        self._ends: list[tuple[int, int, Watched]] = []
        self._source: str | None = None
        self._feed, self._minute_ms = "", 0
        self.changes = 0
        """How often the maker of the prices changed from one price to the next."""
        self._heard: dict[str, int] = {}
        """At which of these changes each began the last time."""

    def remember(self, most: int) -> None:
        """Remember this many ticks from now on."""
        self._most = most
        while len(self.recent) > most:
            self._dropped = self.recent.popleft()

    @property
    def dropped_ms(self) -> int | None:
        """The time of the latest tick that was dropped."""
        return None if self._dropped is None else self._dropped.time_ms

    def side(self, watched: Watched) -> LevelIndex:
        return self.buys if watched.is_buy else self.sells

    def seen(self, watched: Watched) -> SeenExtremes | None:
        """None before the first price."""
        extremes = self.side(watched).extremes(watched)
        if not all(map(isfinite, extremes)):
            return None
        return SeenExtremes(exact_price(max(extremes)), exact_price(min(extremes)), watched.since_ms)

    def others(self, watched: Watched) -> set[str]:
        """What else than ticks of venues it was judged by since it has been watched."""
        found = {feed for feed, began in self._heard.items() if began >= watched.heard_since} - {*VENUES}
        return found if self._minute_ms >= watched.levels.since_ms else found - {MINUTES}

    def _hear(self, feed: str) -> None:
        if feed != self._feed:
            self.changes += 1
            self._feed, self._heard[feed] = feed, self.changes

    def add(self, watched: Watched) -> None:
        self.side(watched).add(watched)
        watched.heard_since = self.changes
        heappush(self._ends, (watched.levels.ends_ms, next(_numbers), watched))
        self.ends_ms = self._ends[0][0]

    def remove(self, watched: Watched) -> None:
        self.side(watched).remove(watched)

    def see(self, minute: StoredMinute) -> list[Watched]:
        """Take a minute that was not seen tick by tick; returns the signals it may close."""
        self._source = None
        self._hear(MINUTES)
        self._minute_ms = minute.opened_ms
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

    def take(self, tick: TickAccepted) -> list[Watched]:
        """Take a tick; returns the signals it may close, which are no longer watched."""
        recent = self.recent
        if len(recent) >= self._most:
            self._dropped = recent.popleft()
        recent.append(tick)
        if tick.source is not self._source:
            # Of pushed ones the key counts too.
            self._source = None if tick.key else tick.source
            self._hear(tick.feed)
        buys, sells = self.buys, self.sells
        bid, ask = tick.bid, -tick.ask
        met: list[Watched] = []
        if buys.live and buys.see(bid):
            met += buys.met(bid)
        if sells.live and sells.see(ask):
            met += sells.met(ask)
        return met + list(self.ended(tick.time_ms)) if tick.time_ms >= self.ends_ms else met

    def ended(self, at_ms: int) -> Iterator[Watched]:
        """Stop watching the signals that end by then, and yield them."""
        ends = self._ends
        while ends and (ends[0][0] <= at_ms or not ends[0][2].is_watched):
            watched = heappop(ends)[2]
            if watched.is_watched:
                self.remove(watched)
                yield watched
        self.ends_ms = ends[0][0] if ends else inf
