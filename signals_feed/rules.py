"""What may be published, and the words and the stored minutes of what ends a signal (exits.py)."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

from core.times import moment

from .exits import (
    CURRENT,
    MINUTE_MS,
    QUOTE,
    STOP,
    STOP_AT_OPEN,
    STOP_AT_WORST,
    TARGET,
    WORST,
    Exit,
    Minute,
    SignalLevels,
    Tick,
    by_minute,
    is_at_target,
    is_stopped,
)


def exact_price(value: float) -> Decimal:
    """Exactly as the market quoted it."""
    return Decimal(str(value))


class Quoted(Tick):
    __slots__ = ()

    @property
    def shown(self) -> dict[str, Any]:
        """Keyed by the evidence's columns."""
        values = {"bid": self.bid, "ask": self.ask, "epoch": self.epoch, "seq": self.seq}
        return {"at": moment(self.time_ms), **values}


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

    def __init__(self, field: str, sentence: str, code: str = "") -> None:
        super().__init__(sentence)
        self.field, self.code = field, code


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
            f"The entry of a buy may not be below the ask, which is {market}.",
        )
    if direction == "sell" and entry > tradable:
        raise SignalRefused(
            "entry",
            f"The entry of a sell may not be above the bid, which is {market}.",
        )
    if abs(entry - tradable) > tradable * FARTHEST:
        raise SignalRefused(
            "entry", f"The entry is more than {FARTHEST:.0%} away from the market price, {market}."
        )


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
    """The reasons to refuse the terms that are known so far, at most one for each."""
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


FILL = "fill"
RULES = {
    QUOTE: "A buyer pays the ask and a seller gets the bid; the worse of this and the entry counts.",
    FILL: "It is filled at the first settled tick from after the request, accepted at least a second later.",
    TARGET: "The target fills at its own price.",
    STOP: "The stop fills at the first tradable price at or beyond it.",
    CURRENT: "It closes at the current price of the exit side: the bid for a buy, the ask for a sell.",
    STOP_AT_OPEN: "The minute opened at or beyond the stop, which fills at that first price.",
    STOP_AT_WORST: "The minute reached the stop, and does not say at which price first: its worst counts.",
    WORST: "The signal had ended, and the minute does not say at which price: its worst counts.",
}


class StoredMinute(Minute):
    __slots__ = ()

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
