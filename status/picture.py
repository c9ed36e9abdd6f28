"""The latency of the last hour as lines of an SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

WIDTH, HEIGHT = 600, 120
LEAST_TOP_MS = 10


class LatencyLine(NamedTuple):
    name: str
    points: str


class LatencyPicture(NamedTuple):
    width: int
    height: int
    top_ms: int
    lines: list[LatencyLine]


def latency_picture(
    rows: Sequence[tuple[datetime, int | None, int | None, int | None]], now: datetime
) -> LatencyPicture:
    top_ms = max([LEAST_TOP_MS, *(value for _, *values in rows for value in values if value is not None)])
    begin = now - timedelta(hours=1)

    def line(name: str, values: list[int | None]) -> LatencyLine:
        points = (
            f"{WIDTH * (row[0] - begin).total_seconds() / 3600:.1f},{HEIGHT * (1 - value / top_ms):.1f}"
            for row, value in zip(rows, values, strict=True)
            if value is not None and row[0] >= begin
        )
        return LatencyLine(name, " ".join(points))

    columns = (
        ("p50", [row[1] for row in rows]),
        ("p95", [row[2] for row in rows]),
        ("p99", [row[3] for row in rows]),
    )
    return LatencyPicture(WIDTH, HEIGHT, top_ms, [line(*column) for column in columns])
