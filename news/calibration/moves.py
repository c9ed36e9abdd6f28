"""How far a price moved between two moments, by closed candles and nothing that came after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
# Further from a moment than this there was no price at it: the market was closed, or the feed away.
NEAR_MS = 15 * MINUTE_MS
NEAR_BY_HOURS_MS = HOUR_MS


class Bar(NamedTuple):
    opened_ms: int
    open: float
    close: float


class Span(NamedTuple):
    start_ms: int
    end_ms: int


def first_after(bars: Sequence[Bar], at_ms: int, near_ms: int) -> float | None:
    """The open of the first candle that opened at the moment or soon after it."""
    return next((bar.open for bar in bars if at_ms <= bar.opened_ms <= at_ms + near_ms), None)


def last_before(bars: Sequence[Bar], at_ms: int, length_ms: int, near_ms: int) -> float | None:
    """The close of the last candle that had closed by the moment, or shortly before it."""
    closed = (bar for bar in reversed(bars) if bar.opened_ms + length_ms <= at_ms)
    return next((bar.close for bar in closed if bar.opened_ms + length_ms >= at_ms - near_ms), None)


def move_percent(bars: Sequence[Bar], span: Span, length_ms: int, near_ms: int) -> float | None:
    """None where there was no price at either end."""
    entry = first_after(bars, span.start_ms, near_ms)
    leave = last_before(bars, span.end_ms, length_ms, near_ms)
    return None if not entry or leave is None else (leave / entry - 1) * 100


def inverse(move: float | None) -> float | None:
    """How far 1/price moved."""
    return None if move is None else (100 / (100 + move) - 1) * 100


def mean_move(moves: Iterable[float | None]) -> float | None:
    """Of an item's instruments together: one item is one observation."""
    priced = [move for move in moves if move is not None]
    return fmean(priced) if priced else None
