"""When a signal ends and at which price: by a tick, or by a stored minute where no tick is known. Pure.

A tick says everything: the stop fills at the first tradable price at or beyond it, the target at its own
price, and if one tick satisfies both the stop wins.

A minute says how far the price went but not in which order, so it is read against the publisher: where the
stop was reached it wins, and it fills at the worst price of the minute, unless the minute opened beyond it,
which is a price that is known. So what a minute decides is never better than what its ticks would have
decided. A minute that began before the signal was published decides nothing, nor does one of trade prices;
one of mids says nothing of the bid."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from . import rules

MINUTE_MS = 60_000
TAKE_PROFIT, STOP_LOSS, EXPIRED, CANCELLED = "take_profit", "stop_loss", "expired", "cancelled"


class Levels(NamedTuple):
    """What a signal waits for."""

    direction: str
    stop: Decimal
    target: Decimal
    since_ms: int
    """The time of the quote that it was published at, or of its publication if that is later."""
    ends_ms: int
    """When it expires, or was cancelled."""
    ending: str = EXPIRED

    @property
    def is_buy(self) -> bool:
        return self.direction == "buy"


class Minute(NamedTuple):
    """A stored minute, as far as bid and ask are known."""

    opened_ms: int
    bid_open: Decimal | None
    bid_low: Decimal | None
    bid_high: Decimal | None
    ask_low: Decimal | None
    ask_high: Decimal | None


class Exit(NamedTuple):
    price: Decimal
    reason: str
    rule: str


def is_stopped(levels: Levels, price: Decimal) -> bool:
    return price <= levels.stop if levels.is_buy else price >= levels.stop


def is_reached(levels: Levels, price: Decimal) -> bool:
    return price >= levels.target if levels.is_buy else price <= levels.target


def by_tick(levels: Levels, bid: Decimal, ask: Decimal, time_ms: int) -> Exit | None:
    """Levels come before the end: they hold until the signal is closed."""
    price = bid if levels.is_buy else ask
    if is_stopped(levels, price):
        return Exit(price, STOP_LOSS, rules.STOP)
    if is_reached(levels, price):
        return Exit(levels.target, TAKE_PROFIT, rules.TARGET)
    return at_current(levels, bid, ask) if time_ms >= levels.ends_ms else None


def at_current(levels: Levels, bid: Decimal, ask: Decimal) -> Exit:
    """Whoever has ended leaves at the current price."""
    return Exit(bid if levels.is_buy else ask, levels.ending, rules.CURRENT)


def by_minute(levels: Levels, minute: Minute) -> Exit | None:
    if minute.opened_ms < levels.since_ms:
        return None
    is_buy = levels.is_buy
    worst, best = (minute.bid_low, minute.bid_high) if is_buy else (minute.ask_high, minute.ask_low)
    if worst is None or best is None:
        return None
    if is_stopped(levels, worst):
        # The open of the ask is not kept.
        if is_buy and minute.bid_open is not None and is_stopped(levels, minute.bid_open):
            return Exit(minute.bid_open, STOP_LOSS, rules.STOP_AT_OPEN)
        return Exit(worst, STOP_LOSS, rules.STOP_AT_WORST)
    if minute.opened_ms + MINUTE_MS > levels.ends_ms:
        # Whether the target was reached before the end or after it, nobody knows.
        return Exit(worst, levels.ending, rules.WORST)
    return Exit(levels.target, TAKE_PROFIT, rules.TARGET) if is_reached(levels, best) else None
