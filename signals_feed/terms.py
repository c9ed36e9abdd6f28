"""The checks of a new signal: nobody gets a price that the market did not offer."""

from decimal import Decimal
from typing import NamedTuple

# A signal about a price further away than this says nothing about the market of now.
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


def tradable_price(direction: str, bid: Decimal, ask: Decimal) -> Decimal:
    """A buyer pays the ask, a seller gets the bid."""
    return ask if direction == "buy" else bid


def check(terms: SignalTerms, bid: Decimal, ask: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """The entry and the tradable price; raises the first reason to refuse."""
    if terms.direction not in ("buy", "sell"):
        raise SignalRefused("direction", "The direction is buy or sell.")
    tradable = tradable_price(terms.direction, bid, ask)
    entry = tradable if terms.entry is None else terms.entry
    for field, value in (
        ("entry", entry),
        ("stop_loss", terms.stop_loss),
        ("take_profit", terms.take_profit),
    ):
        _check_price(field, value, digits)
    _check_entry(terms.direction, entry, tradable)
    _check_levels(terms, entry, bid, ask)
    return entry, tradable


def _check_price(field: str, value: Decimal, digits: int) -> None:
    name = field.replace("_", " ")
    if not value.is_finite() or value <= 0 or value >= TOO_HIGH:
        raise SignalRefused(field, f"The {name} must be a price above 0.")
    if value != round(value, digits):
        decimals = f"{digits} decimals" if digits != 1 else "1 decimal"
        raise SignalRefused(
            field, f"The {name} has more than the {decimals} that prices of this instrument have."
        )


def _check_entry(direction: str, entry: Decimal, tradable: Decimal) -> None:
    if direction == "buy" and entry < tradable:
        raise SignalRefused(
            "entry",
            f"The entry of a buy may not be below the ask, which is {tradable:f}: nobody sells lower.",
        )
    if direction == "sell" and entry > tradable:
        raise SignalRefused(
            "entry", f"The entry of a sell may not be above the bid, which is {tradable:f}: nobody pays more."
        )
    if abs(entry - tradable) > tradable * FARTHEST:
        raise SignalRefused(
            "entry", f"The entry is more than 1 % away from the tradable price, {tradable:f}."
        )


def _check_levels(terms: SignalTerms, entry: Decimal, bid: Decimal, ask: Decimal) -> None:
    """The stop lies beyond the price at which it could be closed now, or the spread would close it."""
    is_buy = terms.direction == "buy"
    stop, target = terms.stop_loss, terms.take_profit
    if not (stop < entry if is_buy else stop > entry):
        raise SignalRefused(
            "stop_loss", f"The stop loss of a {terms.direction} is {_side(not is_buy)} its entry."
        )
    if not (target > entry if is_buy else target < entry):
        raise SignalRefused(
            "take_profit", f"The take profit of a {terms.direction} is {_side(is_buy)} its entry."
        )
    if not (stop < bid if is_buy else stop > ask):
        side, price = ("bid", bid) if is_buy else ("ask", ask)
        raise SignalRefused(
            "stop_loss",
            f"The stop loss would be met at once: a {terms.direction} closes at the {side}, now {price:f}.",
        )


def _side(is_above: bool) -> str:
    return "above" if is_above else "below"
