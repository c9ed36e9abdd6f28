"""A publisher's results summed up, episode by episode, in as many points as a picture needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

# A picture is a few hundred pixels wide.
MOST_POINTS = 400


class EquityPoint(NamedTuple):
    """Equity after this many signals; low and high cover what came since the point before."""

    signals: int
    at: datetime
    equity_r: Decimal
    low_r: Decimal
    high_r: Decimal

    def joined(self, later: EquityPoint) -> EquityPoint:
        return later._replace(low_r=min(self.low_r, later.low_r), high_r=max(self.high_r, later.high_r))


@dataclass(slots=True)
class EquityCurve:
    """One point for each sum. Where there are too many, neighbours are joined, so that memory and answers
    stay small and no fall is smoothed away."""

    points: list[EquityPoint] = field(default_factory=list)
    sums: int = 0
    step: int = 1
    """Sums in a point; the last one may hold fewer."""

    def add(self, at: datetime, equity_r: Decimal, signals: int) -> None:
        new = EquityPoint(signals, at, equity_r, equity_r, equity_r)
        self.sums += 1
        if (self.sums - 1) % self.step:
            self.points[-1] = self.points[-1].joined(new)
            return
        self.points.append(new)
        if len(self.points) > MOST_POINTS:
            self.points, self.step = list(self._pairs()), 2 * self.step

    def _pairs(self) -> Iterator[EquityPoint]:
        for number in range(0, len(self.points), 2):
            first, *second = self.points[number : number + 2]
            yield first.joined(second[0]) if second else first


WIDTH, HEIGHT = 700, 220

# Half the width of the line, so that it stays inside the picture.
EDGE = 2
MOST_ROWS = 20


class EquityPicture(NamedTuple):
    """`line` and `band` are lists of points as SVG writes them; y grows downwards."""

    line: str
    band: str
    """The area between the lowest and the highest sums of the points."""
    zero_y: str
    top_r: Decimal
    bottom_r: Decimal


def draw(points: Sequence[EquityPoint]) -> EquityPicture:
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
    return EquityPicture(
        line=" ".join([start, *(f"{x(point.signals)},{y(point.equity_r)}" for point in points)]),
        band=" ".join([start, *highs, *lows]),
        zero_y=y(Decimal(0)),
        top_r=top,
        bottom_r=bottom,
    )


def table_rows(points: Sequence[EquityPoint]) -> list[EquityPoint]:
    return thinned(points, MOST_ROWS)


def thinned(points: Sequence[EquityPoint], most: int) -> list[EquityPoint]:
    """A few evenly spaced points, the last among them."""
    step = -(-len(points) // most)
    return list(reversed(points[::-1][::step])) if points else []
