"""Averages and ranges, on the logarithms of prices: an instrument and its inverse are mirror images. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import log

from .facts import Bar

ATR_LENGTH = 14


def closes(bars: Sequence[Bar]) -> list[float]:
    return [log(bar.close) for bar in bars]


def ema(values: Sequence[float], length: int) -> list[float]:
    """Begins as the mean of the first `length` values; empty where there are fewer."""
    if len(values) < length:
        return []
    share = 2 / (length + 1)
    average = [sum(values[:length]) / length]
    for value in values[length:]:
        average.append(average[-1] + share * (value - average[-1]))
    return average


def atr(bars: Sequence[Bar]) -> list[float]:
    """Wilder's average true range, as a share of the price; empty where there are too few bars."""
    ranges = [_true_range(before, bar) for before, bar in pairwise(bars)]
    if len(ranges) < ATR_LENGTH:
        return []
    average = [sum(ranges[:ATR_LENGTH]) / ATR_LENGTH]
    for each in ranges[ATR_LENGTH:]:
        average.append(average[-1] + (each - average[-1]) / ATR_LENGTH)
    return average


def percentile(values: Sequence[float], value: float) -> float:
    """The share of values below, those alike counted half: 0.5 where all are."""
    ordered = sorted(values)
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def _true_range(before: Bar, bar: Bar) -> float:
    return log(max(bar.high, before.close)) - log(min(bar.low, before.close))
