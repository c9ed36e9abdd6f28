"""Where a signal of the demo's past ends, by the rules for stored minutes."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from market.prices.candles import Candle
from market.prices.timeframes import MINUTE_MS
from signals_feed.closing import exit_price
from signals_feed.closures import Closing
from signals_feed.excursions import Seen
from signals_feed.judging import Levels, Minute, by_minute
from signals_feed.models import LIFETIME, Evidence, Signal
from signals_feed.quotes import Quoted, moment

LIFETIME_MS = LIFETIME.days * 24 * 60 * MINUTE_MS


def first_exit(signal: Signal, quote: Quoted, path: Iterable[Candle], digits: int) -> Closing | None:
    """None for a signal that is still open where the path ends."""
    ends_ms = quote.time_ms + LIFETIME_MS
    levels = Levels(signal.direction, signal.stop_loss, signal.take_profit, quote.time_ms, ends_ms)
    first = exit_price(signal.direction, quote.bid, quote.ask)
    seen = Seen(first, first, 0)
    for candle in path:
        minute = minute_of(candle, digits)
        found = by_minute(levels, minute)
        if found is None:
            seen = widened(seen, minute, levels)
            continue
        at_ms = candle.opened_ms + MINUTE_MS // 2
        shown = {"at": moment(minute.opened_ms), **minute._asdict()}
        del shown["opened_ms"]
        source = Evidence.Source.CANDLE
        return Closing(signal.pk, found.price, found.reason, at_ms, found.rule, source, shown, seen)
    return None


def minute_of(candle: Candle, digits: int) -> Minute:
    prices = candle.open, candle.low, candle.high, candle.ask_low, candle.ask_high
    return Minute(candle.opened_ms, *(Decimal(f"{price:.{digits}f}") for price in prices))


def widened(seen: Seen, minute: Minute, levels: Levels) -> Seen:
    low, high = (minute.bid_low, minute.bid_high) if levels.is_buy else (minute.ask_low, minute.ask_high)
    if low is None or high is None:
        return seen
    return seen._replace(low=min(seen.low, low), high=max(seen.high, high))
