"""How pages write figures of signals: signs on results, separators in prices, the market's own unit."""

from decimal import Decimal
from typing import Any

from django import template

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
def in_r(value: Decimal | None, decimals: int = 2) -> str:
    return UNKNOWN if value is None else f"{signed(value, decimals)}{NARROW}R"


@register.filter
def percent(value: Decimal | None, decimals: int = 1) -> str:
    return UNKNOWN if value is None else f"{value:,.{decimals}f}{NARROW}%"


@register.filter
def price(value: Decimal | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


@register.filter
def tone(value: Decimal | None) -> str:
    """The class that colours a result."""
    return "" if not value else "gain" if value > 0 else "loss"


@register.filter
def unit(instrument: Any) -> str:
    """Currencies are counted in pips, all else in points; both are one `pip_size`."""
    return "pips" if instrument.type == "forex" else "points"


UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def in_words(seconds: int) -> str:
    """In the two largest units."""
    parts: list[str] = []
    for name, length in UNITS:
        count, seconds = divmod(seconds, length)
        if count or parts:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"
