"""Which ticks are taken, and why others are not: impossible values, times that are over, prices too far from
the last one to be believed at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import isfinite
from statistics import fmean, median
from typing import TYPE_CHECKING

from market.prices.candles import MINUTE_MS, PriceBar, interval_start
from market.prices.records import Tick

if TYPE_CHECKING:
    from instruments.catalogue import InstrumentFacts


# A source whose clock runs ahead by more than this is not believed.
FUTURE_MS = 5_000

# What the database has room for: ten digits before the point.
TOO_HIGH = 1e10

# What cannot be taken says nothing of where the price is, but that it is another than before.
UNBELIEVED = frozenset({"not_finite", "not_positive", "crossed", "too_high", "future", "outlier"})

# Who sends what is older than this, and nothing younger, has a clock that is behind.
STRAGGLES_MS = 60_000


def reason_to_refuse(
    tick: Tick, last: Tick | None, closed_until_ms: int | None, facts: InstrumentFacts, now_ms: int
) -> str | None:
    """None for a good tick; the last good value stays otherwise. Minutes that began before `closed_until_ms`
    are closed; None where none is, because a file is read."""
    if not (isfinite(tick.bid) and isfinite(tick.ask) and isfinite(tick.volume)):
        return "not_finite"
    if tick.volume < 0 or round(tick.bid, facts.digits) <= 0:
        return "not_positive"
    if tick.ask < tick.bid:
        return "crossed"
    if tick.ask >= TOO_HIGH or tick.volume >= TOO_HIGH:
        return "too_high"
    if tick.price is not None and (reason := _reason_of_price(tick.price, facts)):
        return reason
    if tick.time_ms > now_ms + FUTURE_MS:
        return "future"
    return _reason_of_time(tick, last, closed_until_ms, facts)


def shows_another_price(reason: str, tick: Tick, last: Tick | None, now_ms: int) -> bool:
    """Whether a source that sent what was refused so has another price than the last good one. One that sends
    a tick again, or a straggler, or after the close, has not."""
    if reason == "too_late":
        is_older = last is not None and tick.time_ms <= last.time_ms
        return not is_older or now_ms - tick.time_ms > STRAGGLES_MS
    return reason in UNBELIEVED


def _reason_of_price(price: float, facts: InstrumentFacts) -> str | None:
    """The price of a trade, which need not be between bid and ask."""
    if not isfinite(price):
        return "not_finite"
    if round(price, facts.digits) <= 0:
        return "not_positive"
    return "too_high" if price >= TOO_HIGH else None


def _reason_of_time(
    tick: Tick, last: Tick | None, closed_until_ms: int | None, facts: InstrumentFacts
) -> str | None:
    if last is not None and tick.time_ms <= last.time_ms:
        if tick == last:
            return "duplicate"
        if closed_until_ms is not None and tick.time_ms < interval_start(last.time_ms, MINUTE_MS):
            return "too_late"
    if closed_until_ms is not None and tick.time_ms < closed_until_ms:
        return "too_late"
    if last is not None and tick.time_ms < last.time_ms:
        return "older_than_last"
    if not facts.hours.is_open(tick.time_ms):
        return "market_closed"
    return None


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
        self, tick: Tick, last: Tick | None, minutes: Iterable[PriceBar], facts: InstrumentFacts, at_ms: int
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

    def _usual(self, last: Tick, minutes: Iterable[PriceBar]) -> float:
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
