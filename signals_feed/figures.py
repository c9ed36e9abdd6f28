"""How pages write figures of signals: signs on results, separators in prices, the market's own unit."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template

from instruments.facts import counted_in

MINUS, NARROW = "\u2212", "\u00a0"
UNKNOWN = "–"
register = template.Library()


@register.filter
def signed(value: Decimal | None, decimals: int = 2) -> str:
    """Nothing has no sign, nor has what is rounded to it."""
    if value is None:
        return UNKNOWN
    text = f"{abs(value):,.{decimals}f}"
    if not text.strip("0.,"):
        return text
    return (MINUS if value < 0 else "+") + text


@register.filter
def in_r(value: Decimal | None) -> str:
    """Two decimals, as every amount in R has: with one, a small loss would read as none."""
    return UNKNOWN if value is None else f"{signed(value)}{NARROW}R"


@register.filter
def size_in_r(value: Decimal) -> str:
    """Of what is never below zero, and so needs no sign."""
    return f"{value:,.2f}{NARROW}R"


@register.filter
def percent(value: Decimal | None, decimals: int = 1) -> str:
    return UNKNOWN if value is None else f"{value:,.{decimals}f}%"


@register.filter
def price(value: Decimal | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


# Further than this, one number of luck reads like another.
RAREST = 100_000


@register.filter
def odds(evidence: float) -> str:
    """Luck alone leads this far at most this often."""
    return UNKNOWN if evidence < 2 else f"1 in {min(int(evidence), RAREST):,}"


@register.filter
def tone(value: Decimal | None) -> str:
    """The class that colours a result in R. What reads as nothing is neither."""
    shown = 0 if value is None else round(value, 2)
    return "" if not shown else "gain" if shown > 0 else "loss"


def gain_text(instrument: Any, pnl: Decimal, percent: Decimal) -> str:
    """What a signal gained, as its market counts. `pnl` is in units of `pip_size`, whatever the market."""
    match counted_in(instrument.symbol, instrument.type):
        case "pips":
            return f"{signed(pnl, 1)}{NARROW}pips"
        case "points":
            moved = pnl * Decimal(str(instrument.pip_size))
            return f"{signed(moved, instrument.digits)}{NARROW}points"
        case _:
            return f"{signed(percent)}%"


@register.filter
def gains(signal: Any) -> list[str]:
    """Of a closed signal: in the unit of its market, and in percent."""
    in_percent = f"{signed(signal.pnl_percent)}%"
    return list(dict.fromkeys([gain_text(signal.instrument, signal.pnl, signal.pnl_percent), in_percent]))


def exact_time(at: datetime) -> str:
    """To the millisecond, as evidence is kept."""
    return f"{at:%-d %b %Y, %H:%M:%S}.{at.microsecond // 1000:03d} UTC"


def tick_number(seq: int, epoch: str) -> str:
    return f"number {seq:,} in series {epoch}"


UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def in_words(seconds: int) -> str:
    """In the two largest units, on one line."""
    parts: list[str] = []
    for name, length in UNITS:
        count, seconds = divmod(seconds, length)
        if count or parts:
            parts.append(f"{count}{NARROW}{name}")
    return NARROW.join(parts[:2]) or f"0{NARROW}s"
