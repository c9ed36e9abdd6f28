"""The latency of the last hour as lines of an SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

WIDTH, HEIGHT = 600, 120
LEAST_TOP_MS = 10


class Line(NamedTuple):
    name: str
    points: str


class Picture(NamedTuple):
    width: int
    height: int
    top_ms: int
    lines: list[Line]


def picture(rows: Sequence[tuple[datetime, int | None, int | None, int | None]], now: datetime) -> Picture:
    top_ms = max([LEAST_TOP_MS, *(value for row in rows for value in row[1:] if value is not None)])
    begin = now - timedelta(hours=1)

    def points(column: int) -> str:
        return " ".join(
            f"{WIDTH * (row[0] - begin).total_seconds() / 3600:.1f},{HEIGHT * (1 - value / top_ms):.1f}"
            for row in rows
            if (value := row[column]) is not None and row[0] >= begin
        )

    lines = [Line(name, points(column)) for column, name in enumerate(("p50", "p95", "p99"), start=1)]
    return Picture(WIDTH, HEIGHT, top_ms, lines)
