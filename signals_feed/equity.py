"""A publisher's results summed up, signal by signal, in as many points as a picture needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

# A picture is a few hundred pixels wide.
MOST_POINTS = 400


class Point(NamedTuple):
    """Equity after `signals` of them; low and high are of the signals since the point before."""

    signals: int
    closed_at: datetime
    equity_r: Decimal
    low_r: Decimal
    high_r: Decimal

    def joined(self, later: Point) -> Point:
        return later._replace(low_r=min(self.low_r, later.low_r), high_r=max(self.high_r, later.high_r))


@dataclass(slots=True)
class Curve:
    """One point for each signal. Where that would be too many, neighbours become one, so that memory and
    answers stay small and no fall is smoothed away."""

    points: list[Point] = field(default_factory=list)
    step: int = 1
    """Signals in a point; the last one may hold fewer."""

    def add(self, closed_at: datetime, equity_r: Decimal) -> None:
        signals = self.points[-1].signals + 1 if self.points else 1
        new = Point(signals, closed_at, equity_r, equity_r, equity_r)
        if self.points and (signals - 1) % self.step:
            self.points[-1] = self.points[-1].joined(new)
            return
        self.points.append(new)
        if len(self.points) > MOST_POINTS:
            self.points, self.step = list(self._pairs()), 2 * self.step

    def _pairs(self) -> Iterator[Point]:
        for number in range(0, len(self.points), 2):
            first, *second = self.points[number : number + 2]
            yield first.joined(second[0]) if second else first
