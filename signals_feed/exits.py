"""When a signal ends, at which price, and what it earned. Prices are Decimals, and nobody gets one that the
market did not offer. It needs the standard library alone, because those who check a result run it too.

A tick says everything: the stop fills at the first tradable price at or beyond it, the target at its own
price, and if one tick satisfies both the stop wins.

A minute says how far the price went but not in which order, so it is read against the publisher: where the
stop was reached it wins, and it fills at the worst price of the minute, unless the minute opened beyond it,
which is a price that is known. So what a minute decides is never better than what its ticks would have
decided. A minute that began before the signal was published decides nothing, nor does one of trade prices;
one of mids says nothing of the bid."""

from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple, TypeVar

MINUTE_MS = 60_000
QUOTE, TARGET, STOP, CURRENT = "quote", "target", "stop", "current"
STOP_AT_OPEN, STOP_AT_WORST, WORST = "stop_at_open", "stop_at_worst", "worst"
TAKE_PROFIT, STOP_LOSS, EXPIRED, CANCELLED = "take_profit", "stop_loss", "expired", "cancelled"
MANUAL = "manual"


class Tick(NamedTuple):
    bid: Decimal
    ask: Decimal
    time_ms: int
    epoch: str = ""
    seq: int = 0
    """Its number in its stream; 0 if unknown."""
    accepted_ms: int = 0
    """When the engine let it in, by the engine's clock; 0 if unknown."""
    feed: str = ""
    """Who made the price; empty if unknown."""
    settled: bool = True
    """False from a refused outlier on, until the prices are settled again."""
    unsettled_ms: int = 0
    """How long they were not, in its numbering so far."""


class Minute(NamedTuple):
    """A stored minute, as far as bid and ask are known."""

    opened_ms: int
    bid_open: Decimal | None
    bid_low: Decimal | None
    bid_high: Decimal | None
    ask_low: Decimal | None
    ask_high: Decimal | None


class SignalLevels(NamedTuple):
    """The levels and times that end a signal."""

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


Price = TypeVar("Price", Decimal, float)


def exit_price(direction: str, bid: Price, ask: Price) -> Price:
    # A buyer gets out on the bid; the mid would report profit nobody could take.
    return bid if direction == "buy" else ask


class Exit(NamedTuple):
    price: Decimal
    reason: str
    rule: str


def is_stopped(levels: SignalLevels, price: Decimal) -> bool:
    return price <= levels.stop if levels.is_buy else price >= levels.stop


def is_at_target(levels: SignalLevels, price: Decimal) -> bool:
    return price >= levels.target if levels.is_buy else price <= levels.target


def by_tick(levels: SignalLevels, tick: Tick) -> Exit | None:
    """The levels come before the end: they hold until the signal is closed."""
    price = exit_price(levels.direction, tick.bid, tick.ask)
    if is_stopped(levels, price):
        return Exit(price, STOP_LOSS, STOP)
    if is_at_target(levels, price):
        return Exit(levels.target, TAKE_PROFIT, TARGET)
    return at_current(levels, tick) if tick.time_ms >= levels.ends_ms else None


def at_current(levels: SignalLevels, quote: Tick) -> Exit:
    """The exit of an expired or cancelled signal."""
    return Exit(exit_price(levels.direction, quote.bid, quote.ask), levels.ending, CURRENT)


def by_minute(levels: SignalLevels, minute: Minute) -> Exit | None:
    if minute.opened_ms < levels.since_ms:
        return None
    is_buy = levels.is_buy
    worst, best = (minute.bid_low, minute.bid_high) if is_buy else (minute.ask_high, minute.ask_low)
    if worst is None or best is None:
        return None
    if is_stopped(levels, worst):
        # The open of the ask is not kept.
        if is_buy and minute.bid_open is not None and is_stopped(levels, minute.bid_open):
            return Exit(minute.bid_open, STOP_LOSS, STOP_AT_OPEN)
        return Exit(worst, STOP_LOSS, STOP_AT_WORST)
    if minute.opened_ms + MINUTE_MS > levels.ends_ms:
        # Nobody knows whether the target was reached before the end or after it.
        return Exit(worst, levels.ending, WORST)
    return Exit(levels.target, TAKE_PROFIT, TARGET) if is_at_target(levels, best) else None


PIPS = Decimal("0.1")
SHARE = Decimal("0.0001")


class Result(NamedTuple):
    pnl: Decimal
    """Signed pips."""
    pnl_percent: Decimal
    pnl_r: Decimal
    """In units of the risk that was taken: the distance from entry to stop."""


def paid_entry(direction: str, entry: Decimal, tradable: Decimal) -> Decimal:
    """A publisher gets the worse of the price they named and the one the market offered."""
    return max(entry, tradable) if direction == "buy" else min(entry, tradable)


def gain(direction: str, paid: Decimal, price: Decimal) -> Decimal:
    """In price; negative for a loss."""
    return price - paid if direction == "buy" else paid - price


def result(
    direction: str,
    entry: Decimal,
    stop_loss: Decimal,
    tradable: Decimal,
    close_price: Decimal,
    pip_size: Decimal,
) -> Result:
    paid = paid_entry(direction, entry, tradable)
    gained = gain(direction, paid, close_price)
    return Result(
        pnl=_rounded(gained / pip_size, PIPS),
        pnl_percent=_rounded(gained / paid * 100, SHARE),
        pnl_r=in_r(direction, entry, stop_loss, tradable, close_price),
    )


def in_r(direction: str, entry: Decimal, stop_loss: Decimal, tradable: Decimal, price: Decimal) -> Decimal:
    """How far a price of the exit side is from the one that was paid, in units of the risk."""
    paid = paid_entry(direction, entry, tradable)
    return _rounded(gain(direction, paid, price) / abs(paid - stop_loss), SHARE)


def _rounded(value: Decimal, step: Decimal) -> Decimal:
    """Rounded half away from zero, as ROUND_HALF_UP does for either sign; adding 0 turns -0.0 into 0.0."""
    return value.quantize(step, ROUND_HALF_UP) + 0
