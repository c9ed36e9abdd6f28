"""The latency of the last hour as lines of an SVG, with the labels of its axes."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

WIDTH, HEIGHT = 600, 120
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LEAST_TOP_MS = 10
NAMES = ("p50", "p95", "p99")
TIMES = 5


class LatencyMinute(msgspec.Struct):
    """From the engine's acceptance of a tick to its write to the socket, in milliseconds."""

    minute: datetime
    p50: int | None
    p95: int | None
    p99: int | None
    age_p50: int | None = None
    """From the tick's own time, likewise."""
    age_p95: int | None = None
    age_p99: int | None = None


class LatencyLine(NamedTuple):
    name: str
    path: str
    dots: str
    """The minutes without a neighbour: a line of one point, with its dashes, is not seen."""


class LatencyPicture(NamedTuple):
    width: int
    height: int
    top_ms: int
    half_ms: int
    times: list[datetime]
    """Evenly along the axis, from its beginning to its end."""
    lines: list[LatencyLine]


def latency_picture(minutes: Sequence[LatencyMinute], now: datetime) -> LatencyPicture:
    values = (getattr(minute, name) for minute in minutes for name in NAMES)
    top_ms = round_up(max([LEAST_TOP_MS, *(value for value in values if value is not None)]))
    begin = now - HOUR

    def point(minute: datetime, value: int) -> str:
        x = WIDTH * (minute - begin) / HOUR
        return f"{x:.1f},{HEIGHT * (1 - value / top_ms):.1f}"

    lines = []
    for name in NAMES:
        known = [(each.minute, getattr(each, name)) for each in minutes if each.minute >= begin]
        strokes = list(pieces([(minute, value) for minute, value in known if value is not None]))
        path = "".join("M" + "L".join(point(*each) for each in stroke) for stroke in strokes if stroke[1:])
        dots = "".join(f"M{point(*stroke[0])}h0" for stroke in strokes if not stroke[1:])
        lines.append(LatencyLine(name, path, dots))
    times = [begin + n * HOUR / (TIMES - 1) for n in range(TIMES)]
    return LatencyPicture(WIDTH, HEIGHT, top_ms, top_ms // 2, times, lines)


def round_up(value: int) -> int:
    """The next of 10, 20, 50, 100, 200, …"""
    step = LEAST_TOP_MS
    while True:
        for times in (1, 2, 5):
            if step * times >= value:
                return step * times
        step *= 10


Measured = tuple[datetime, int]


def pieces(points: Sequence[Measured]) -> Iterator[list[Measured]]:
    """A line ends where a minute is missing."""
    piece: list[Measured] = []
    for at, value in points:
        if piece and at - piece[-1][0] > MINUTE:
            yield piece
            piece = []
        piece.append((at, value))
    if piece:
        yield piece
