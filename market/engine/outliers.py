"""Prices that nobody can have meant: too far from the last one to be believed at once. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import fmean, median
from typing import TYPE_CHECKING

from market.prices.candles import Candle
from market.prices.ticks import Tick

if TYPE_CHECKING:
    from instruments.catalogue import InstrumentFacts

SPREADS = 50
RANGES = 15
# So many ticks that agree with each other are a new level; the last of them is taken.
AGREEING = 3
KEPT_SPREADS = 100


class Outliers:
    """Of one instrument. A tick is refused where its mid is further from the last one than 50 median spreads,
    15 mean ranges of a minute, and the instrument's share of the price, or the price of its trade as far from
    its own mid."""

    __slots__ = ("_agreeing", "_level", "_spreads", "last_price", "refused", "refused_ms")

    def __init__(self) -> None:
        self._spreads: deque[float] = deque(maxlen=KEPT_SPREADS)
        self._level = 0.0
        self._agreeing = 0
        self.refused = 0
        self.refused_ms = 0
        self.last_price = 0.0
        """The mid of the last one that was refused, or the price of its trade."""

    def note(self, tick: Tick) -> None:
        """It was taken, so whatever was refused before it is no new level."""
        self._spreads.append(tick.ask - tick.bid)
        self._agreeing = 0

    def refuses(
        self, tick: Tick, last: Tick | None, minutes: Iterable[Candle], facts: InstrumentFacts, at_ms: int
    ) -> bool:
        """`minutes` are the last that were closed."""
        share = facts.outlier_percent
        if last is None or not share:
            return False
        mid, last_mid = (tick.bid + tick.ask) / 2, (last.bid + last.ask) / 2
        far, near = abs(mid - last_mid), last_mid * share / 100
        off = 0.0 if tick.price is None else abs(tick.price - mid)
        # Nearly always: what follows is for the others.
        if (far <= near and off <= near) or _is_first(last, facts, tick.time_ms, at_ms):
            return False
        limit = max(near, self._usual(last, minutes))
        if tick.price is not None and off > limit:
            # Nothing confirms it: where it belongs, the quote that it came with says.
            self._note_refused(tick.price, tick.time_ms)
            return True
        return far > limit and not self._confirms(mid, limit, tick.time_ms)

    def _usual(self, last: Tick, minutes: Iterable[Candle]) -> float:
        spread = median(self._spreads or [last.ask - last.bid])
        ranges = [minute.high - minute.low for minute in minutes]
        return max(SPREADS * spread, RANGES * fmean(ranges) if ranges else 0.0)

    def _confirms(self, mid: float, limit: float, time_ms: int) -> bool:
        agrees = self._agreeing > 0 and abs(mid - self._level) <= limit
        self._agreeing = self._agreeing + 1 if agrees else 1
        self._level = mid
        if self._agreeing == AGREEING:
            return True
        self._note_refused(mid, time_ms)
        return False

    def _note_refused(self, price: float, time_ms: int) -> None:
        self.refused, self.refused_ms, self.last_price = self.refused + 1, time_ms, price


def _is_first(last: Tick, facts: InstrumentFacts, time_ms: int, at_ms: int) -> bool:
    """After the opening, or after a time in which the quote was stale."""
    if at_ms - last.time_ms > facts.stale_after_s * 1000:
        return True
    session = facts.hours.session_at(time_ms)
    return session is None or last.time_ms < session[0]
