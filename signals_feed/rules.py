"""What may be published, when a signal ends and at which price, and what it earned. Prices are Decimals, and
nobody gets one that the market did not offer.

A tick says everything: the stop fills at the first tradable price at or beyond it, the target at its own
price, and if one tick satisfies both the stop wins.

A minute says how far the price went but not in which order, so it is read against the publisher: where the
stop was reached it wins, and it fills at the worst price of the minute, unless the minute opened beyond it,
which is a price that is known. So what a minute decides is never better than what its ticks would have
decided. A minute that began before the signal was published decides nothing, nor does one of trade prices;
one of mids says nothing of the bid."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from core.times import MINUTE_MS, moment


def exact_price(value: float) -> Decimal:
    """Exactly as the market quoted it."""
    return Decimal(str(value))


class Quoted(NamedTuple):
    bid: Decimal
    ask: Decimal
    time_ms: int
    epoch: str = ""
    seq: int = 0
    """The tick's number in its stream; 0 if unknown."""

    @property
    def shown(self) -> dict[str, Any]:
        """Keyed by the evidence's columns."""
        values = self._asdict()
        return {"at": moment(values.pop("time_ms")), **values}


# A signal about a price further away than this says nothing about the present market.
FARTHEST = Decimal("0.01")
TOO_HIGH = Decimal(10) ** 10


class SignalTerms(NamedTuple):
    symbol: str
    direction: str
    stop_loss: Decimal
    take_profit: Decimal
    entry: Decimal | None = None
    """None means whatever the market offers."""


class SignalRefused(Exception):
    """The reason, in a sentence for the publisher; `field` is empty if no field is to blame."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def check(terms: SignalTerms, quote: Quoted, digits: int) -> tuple[Decimal, Decimal]:
    """The entry and the tradable price; raises the first reason to refuse."""
    if terms.direction not in ("buy", "sell"):
        raise SignalRefused("direction", "The direction is buy or sell.")
    # A buyer pays the ask, a seller gets the bid.
    tradable = quote.ask if terms.direction == "buy" else quote.bid
    entry = tradable if terms.entry is None else terms.entry
    _check_price("entry", entry, digits)
    _check_price("stop_loss", terms.stop_loss, digits)
    _check_price("take_profit", terms.take_profit, digits)
    _check_entry(terms.direction, entry, tradable, digits)
    _check_stop(terms.direction, terms.stop_loss, entry, quote, digits)
    _check_target(terms.direction, terms.take_profit, entry)
    return entry, tradable


NAMES = {"entry": "entry", "stop_loss": "stop", "take_profit": "target"}


def _check_price(field: str, value: Decimal, digits: int) -> None:
    name = NAMES[field]
    if not value.is_finite() or value <= 0 or value >= TOO_HIGH:
        raise SignalRefused(field, f"The {name} must be a price above 0.")
    if value != round(value, digits):
        decimals = f"{digits} decimal{'s' * (digits != 1)}"
        raise SignalRefused(
            field, f"The {name} has more than the {decimals} that prices of this instrument have."
        )


def _check_entry(direction: str, entry: Decimal, tradable: Decimal, digits: int) -> None:
    market = f"{tradable:,.{digits}f}"
    if direction == "buy" and entry < tradable:
        raise SignalRefused(
            "entry",
            f"The entry of a buy may not be below the ask, which is {market}: nobody sells lower.",
        )
    if direction == "sell" and entry > tradable:
        raise SignalRefused(
            "entry",
            f"The entry of a sell may not be above the bid, which is {market}: nobody pays more.",
        )
    if abs(entry - tradable) > tradable * FARTHEST:
        raise SignalRefused("entry", f"The entry is more than 1% away from the market price, {market}.")


def _check_stop(direction: str, stop: Decimal, entry: Decimal, quote: Quoted, digits: int) -> None:
    """It lies beyond the price at which it could be closed now, or the spread would close it."""
    is_buy = direction == "buy"
    if not (stop < entry if is_buy else stop > entry):
        behind = "below" if is_buy else "above"
        raise SignalRefused("stop_loss", f"The stop of a {direction} must be {behind} the entry.")
    if not (stop < quote.bid if is_buy else stop > quote.ask):
        side, price = ("bid", quote.bid) if is_buy else ("ask", quote.ask)
        now = f"{price:,.{digits}f}"
        raise SignalRefused(
            "stop_loss",
            f"The stop would be reached at once: a {direction} closes at the {side}, now {now}.",
        )


def _check_target(direction: str, target: Decimal, entry: Decimal) -> None:
    is_buy = direction == "buy"
    if not (target > entry if is_buy else target < entry):
        ahead = "above" if is_buy else "below"
        raise SignalRefused("take_profit", f"The target of a {direction} must be {ahead} the entry.")


def faults_of(
    direction: str, prices: Mapping[str, Decimal], quote: Quoted, digits: int
) -> Iterator[SignalRefused]:
    """What would be refused of the terms that are known so far, at most once for each."""
    entry = prices.get("entry")
    for field, price in prices.items():
        try:
            _check_price(field, price, digits)
            if field == "entry":
                _check_entry(direction, price, quote.ask if direction == "buy" else quote.bid, digits)
            elif entry is not None and field == "stop_loss":
                _check_stop(direction, price, entry, quote, digits)
            elif entry is not None:
                _check_target(direction, price, entry)
        except SignalRefused as refusal:
            yield refusal


QUOTE, TARGET, STOP, CURRENT = "quote", "target", "stop", "current"
STOP_AT_OPEN, STOP_AT_WORST, WORST = "stop_at_open", "stop_at_worst", "worst"
RULES = {
    QUOTE: "A buyer pays the ask and a seller gets the bid; the worse of this and the entry counts.",
    TARGET: "The target fills at its own price.",
    STOP: "The stop fills at the first tradable price at or beyond it.",
    CURRENT: "It closes at the current price of the exit side: the bid for a buy, the ask for a sell.",
    STOP_AT_OPEN: "The minute opened at or beyond the stop, which fills at that first price.",
    STOP_AT_WORST: "The minute reached the stop, and does not say at which price first: its worst counts.",
    WORST: "The signal had ended, and the minute does not say at which price: its worst counts.",
}
TAKE_PROFIT, STOP_LOSS, EXPIRED, CANCELLED = "take_profit", "stop_loss", "expired", "cancelled"


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


class StoredMinute(NamedTuple):
    """A stored minute, as far as bid and ask are known."""

    opened_ms: int
    bid_open: Decimal | None
    bid_low: Decimal | None
    bid_high: Decimal | None
    ask_low: Decimal | None
    ask_high: Decimal | None

    @property
    def shown(self) -> dict[str, Any]:
        """Keyed by the evidence's columns."""
        prices = self._asdict()
        return {"at": moment(prices.pop("opened_ms")), **prices}


class SeenExtremes(NamedTuple):
    """The extremes of the exit side that a watcher saw, and since when it watched."""

    high: Decimal
    low: Decimal
    since_ms: int
    """0 means since the publication."""


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


def by_tick(levels: SignalLevels, tick: Quoted) -> Exit | None:
    """The levels come before the end: they hold until the signal is closed."""
    price = exit_price(levels.direction, tick.bid, tick.ask)
    if is_stopped(levels, price):
        return Exit(price, STOP_LOSS, STOP)
    if is_at_target(levels, price):
        return Exit(levels.target, TAKE_PROFIT, TARGET)
    return at_current(levels, tick) if tick.time_ms >= levels.ends_ms else None


def at_current(levels: SignalLevels, quote: Quoted) -> Exit:
    """The exit of an expired or cancelled signal."""
    return Exit(exit_price(levels.direction, quote.bid, quote.ask), levels.ending, CURRENT)


def by_minute(levels: SignalLevels, minute: StoredMinute) -> Exit | None:
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


class StoredMinutes:
    """The stored minutes of one symbol, in order."""

    def __init__(self, minutes: Sequence[StoredMinute]) -> None:
        self._minutes = minutes
        self._opened = [minute.opened_ms for minute in minutes]
        self._bids = _extremes([(minute.bid_low, minute.bid_high) for minute in minutes])
        self._asks = _extremes([(minute.ask_low, minute.ask_high) for minute in minutes])

    def first_exit(self, levels: SignalLevels) -> tuple[Exit, StoredMinute] | None:
        begin = bisect_left(self._opened, levels.since_ms)
        if begin == len(self._opened) or not self._may_end(levels, begin):
            return None
        for minute in self._minutes[begin:]:
            if exit_ := by_minute(levels, minute):
                return exit_, minute
        return None

    def _may_end(self, levels: SignalLevels, begin: int) -> bool:
        if self._opened[-1] + MINUTE_MS > levels.ends_ms:
            return True
        lowest, highest = (self._bids if levels.is_buy else self._asks)[begin]
        worst, best = (lowest, highest) if levels.is_buy else (highest, lowest)
        return is_stopped(levels, worst) or is_at_target(levels, best)


INFINITE = Decimal("Infinity")


def _extremes(
    ranges: Sequence[tuple[Decimal | None, Decimal | None]],
) -> list[tuple[Decimal, Decimal]]:
    """For each position, the lowest and the highest price from there on; infinite if there is none."""
    lows = (INFINITE if low is None else low for low, _ in reversed(ranges))
    highs = (-INFINITE if high is None else high for _, high in reversed(ranges))
    return list(zip(accumulate(lows, min), accumulate(highs, max), strict=True))[::-1]


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
