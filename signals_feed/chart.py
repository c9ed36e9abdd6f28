"""An equity curve as coordinates of a picture. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from .equity import Point

WIDTH, HEIGHT = 700, 220
# Half of the line's width stays inside the picture.
EDGE = 2
MOST_ROWS = 20


class Picture(NamedTuple):
    """`line` and `band` are lists of points as SVG writes them; y grows downwards."""

    line: str
    band: str
    """Between the lowest and the highest of the signals that share a point."""
    nought_y: str
    top_r: Decimal
    bottom_r: Decimal


def draw(points: Sequence[Point]) -> Picture:
    top = max(Decimal(0), *(point.high_r for point in points))
    bottom = min(Decimal(0), *(point.low_r for point in points))
    span = (top - bottom) or Decimal(1)
    last = points[-1].signals

    def x(signals: int) -> str:
        return f"{EDGE + (WIDTH - 2 * EDGE) * signals / last:.1f}"

    def y(equity_r: Decimal) -> str:
        return f"{EDGE + (HEIGHT - 2 * EDGE) * (top - equity_r) / span:.1f}"

    start = f"{x(0)},{y(Decimal(0))}"
    highs = [f"{x(point.signals)},{y(point.high_r)}" for point in points]
    lows = [f"{x(point.signals)},{y(point.low_r)}" for point in reversed(points)]
    return Picture(
        line=" ".join([start, *(f"{x(point.signals)},{y(point.equity_r)}" for point in points)]),
        band=" ".join([start, *highs, *lows]),
        nought_y=y(Decimal(0)),
        top_r=top,
        bottom_r=bottom,
    )


def rows(points: Sequence[Point]) -> list[Point]:
    """Few enough to read, evenly spaced, the last one among them."""
    step = -(-len(points) // MOST_ROWS)
    return list(reversed(points[::-1][::step])) if points else []
