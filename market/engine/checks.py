"""The door: which ticks are taken, and why others are not. Pure."""

from __future__ import annotations

from math import isfinite

from market.prices.ticks import Tick

# A source whose clock runs ahead by more than this is not believed.
FUTURE_MS = 5_000


def reason_to_refuse(tick: Tick, last: Tick | None, now_ms: int) -> str | None:
    """None for a good tick; the last good value stays otherwise."""
    if not (isfinite(tick.bid) and isfinite(tick.ask) and isfinite(tick.volume)):
        return "not_finite"
    if tick.bid <= 0 or tick.ask <= 0 or tick.volume < 0:
        return "not_positive"
    if tick.ask < tick.bid:
        return "crossed"
    if tick.time_ms > now_ms + FUTURE_MS:
        return "future"
    if last is not None:
        if tick.time_ms < last.time_ms:
            return "older_than_last"
        if tick == last:
            return "duplicate"
    return None
