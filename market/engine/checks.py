"""The door: which ticks are taken, and why others are not. Pure."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from market.prices.ticks import Tick
from market.prices.timeframes import MINUTE_MS, interval_start

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
