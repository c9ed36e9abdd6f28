"""What a closed signal earned, and how far it went. Pure, and exact: prices are Decimals throughout."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

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


def result(
    direction: str,
    entry: Decimal,
    stop_loss: Decimal,
    tradable: Decimal,
    close_price: Decimal,
    pip_size: Decimal,
) -> Result:
    paid = paid_entry(direction, entry, tradable)
    gained = close_price - paid if direction == "buy" else paid - close_price
    return Result(
        pnl=_rounded(gained / pip_size, PIPS),
        pnl_percent=_rounded(gained / paid * 100, SHARE),
        pnl_r=_rounded(gained / abs(paid - stop_loss), SHARE),
    )


def in_r(direction: str, entry: Decimal, stop_loss: Decimal, tradable: Decimal, price: Decimal) -> Decimal:
    """How far a price of the exit side is from the one that was paid, in units of the risk."""
    paid = paid_entry(direction, entry, tradable)
    gained = price - paid if direction == "buy" else paid - price
    return _rounded(gained / abs(paid - stop_loss), SHARE)


def exit_price(direction: str, bid: Decimal, ask: Decimal) -> Decimal:
    # A buyer gets out on the bid; the mid would report profit nobody could take.
    return bid if direction == "buy" else ask


def _rounded(value: Decimal, step: Decimal) -> Decimal:
    """Half away from zero, as ROUND_HALF_UP does for Decimals of either sign; nought is never -0.0."""
    return value.quantize(step, ROUND_HALF_UP) + 0
