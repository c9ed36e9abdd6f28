"""Numbers as staff read them at a glance. Pure."""

from __future__ import annotations

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def span(ms: int | None) -> str:
    """0.4 s, 12 s, 3 min, 2 h, 4 d."""
    if ms is None:
        return NONE
    for unit_ms, unit in SPANS:
        if ms >= unit_ms and ms >= 10_000:
            return f"{ms // unit_ms} {unit}"
    return f"{ms / 1000:.1f} s".replace("-", MINUS)


def price(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def size(value: float) -> str:
    """12, 3.5, 48.2 k, 1.3 M."""
    for unit, letter in SIZES:
        if abs(value) >= unit:
            return f"{value / unit:.1f} {letter}".replace("-", MINUS)
    return f"{value:.4g}".replace("-", MINUS)


def signed(text: str) -> str:
    """With the sign of a change."""
    return text if text.startswith(MINUS) or not any(digit in text for digit in "123456789") else f"+{text}"


def change(percent: float) -> str:
    # With 0.0 added there is no minus before a change of nothing.
    return f"{signed(f'{round(percent, 2) + 0.0:.2f}'.replace('-', MINUS))} %"
