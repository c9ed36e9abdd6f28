"""How every benchmark shows its figures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def spread(values: Sequence[float], digits: int = 0) -> str:
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return f"{median(values):,.{digits}f} ({low}–{high})"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    )
    return "\n".join(lines) + "\n"
