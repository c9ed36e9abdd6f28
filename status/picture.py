"""The latency of the last hour as lines of an SVG."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

WIDTH, HEIGHT = 600, 120
LEAST_TOP_MS = 10
NAMES = ("p50", "p95", "p99")


class LatencyMinute(msgspec.Struct):
    """From the engine's acceptance of a tick to its write to the socket, in milliseconds."""

    minute: datetime
    p50: int | None
    p95: int | None
    p99: int | None


class LatencyLine(NamedTuple):
    name: str
    points: str


class LatencyPicture(NamedTuple):
    width: int
    height: int
    top_ms: int
    lines: list[LatencyLine]


def latency_picture(minutes: Sequence[LatencyMinute], now: datetime) -> LatencyPicture:
    values = (getattr(minute, name) for minute in minutes for name in NAMES)
    top_ms = max([LEAST_TOP_MS, *(value for value in values if value is not None)])
    begin = now - timedelta(hours=1)

    def point(minute: datetime, value: int) -> str:
        x = WIDTH * (minute - begin).total_seconds() / 3600
        return f"{x:.1f},{HEIGHT * (1 - value / top_ms):.1f}"

    lines = []
    for name in NAMES:
        known = [(each.minute, getattr(each, name)) for each in minutes if each.minute >= begin]
        points = [point(minute, value) for minute, value in known if value is not None]
        lines.append(LatencyLine(name, " ".join(points)))
    return LatencyPicture(WIDTH, HEIGHT, top_ms, lines)
