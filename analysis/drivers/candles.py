"""The trend and the volatility, both from candles.

Averages and ranges are computed on logarithms, so that an instrument and its inverse are mirror images."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import expm1, log, tanh

from analysis.answer import Finding, TimeframeTrend, TrendEvidence, VolatilityEvidence
from analysis.facts import AnalysedBar, Facts
from news.labels import sentiment_label

ATR_LENGTH = 14


def ema(values: Sequence[float], length: int) -> list[float]:
    """Starts with the mean of the first `length` values; empty if there are fewer."""
    if len(values) < length:
        return []
    share = 2 / (length + 1)
    average = [sum(values[:length]) / length]
    for value in values[length:]:
        average.append(average[-1] + share * (value - average[-1]))
    return average


def atr(bars: Sequence[AnalysedBar]) -> list[float]:
    """Wilder's average true range, as a share of the price; empty if there are too few bars."""
    ranges = [_true_range(before, bar) for before, bar in pairwise(bars)]
    if len(ranges) < ATR_LENGTH:
        return []
    average = [sum(ranges[:ATR_LENGTH]) / ATR_LENGTH]
    for each in ranges[ATR_LENGTH:]:
        average.append(average[-1] + (each - average[-1]) / ATR_LENGTH)
    return average


def percentile(values: Sequence[float], value: float) -> float:
    """The share of smaller values, with equal ones counted half, so 0.5 if all are equal."""
    ordered = sorted(values)
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def _true_range(before: AnalysedBar, bar: AnalysedBar) -> float:
    return log(max(bar.high, before.close)) - log(min(bar.low, before.close))


TREND_WEIGHTS = {"15m": 0.2, "1h": 0.3, "4h": 0.3, "1d": 0.2}
FAST, SLOW, SLOPE_OVER = 20, 50, 5

# An average needs some values to settle after its start.
FEWEST = SLOW + 10


def weigh_trend(facts: Facts) -> Finding:
    """A timeframe without enough candles counts as neutral."""
    price = facts.price
    if price is None:
        return Finding("There are no candles yet to see a trend in.")
    found = [
        trend_of(timeframe, weight, bars, price)
        for timeframe, weight in TREND_WEIGHTS.items()
        if len(bars := facts.bars.get(timeframe, ())) >= FEWEST
    ]
    if not found:
        return Finding(f"A trend needs {FEWEST} closed candles, and no timeframe has them yet.")
    score = sum(each.weight * each.score for each in found)
    return Finding(describe_trend(found), score, TrendEvidence(found))


def trend_of(timeframe: str, weight: float, bars: Sequence[AnalysedBar], price: float) -> TimeframeTrend:
    values = [log(bar.close) for bar in bars]
    fast, slow, unit = ema(values, FAST), ema(values, SLOW), atr(bars)[-1]
    if not unit:
        return TimeframeTrend(timeframe, weight, 0.0, 0.0, 0.0, 0.0)
    spread = (fast[-1] - slow[-1]) / unit
    slope = (fast[-1] - fast[-1 - SLOPE_OVER]) / unit
    position = (log(price) - fast[-1]) / unit
    score = tanh(0.5 * spread + 0.3 * slope + 0.2 * position)
    rounded = (round(number, 3) for number in (score, spread, slope, position))
    return TimeframeTrend(timeframe, weight, *rounded)


def describe_trend(found: list[TimeframeTrend]) -> str:
    words = {"bullish": "up", "bearish": "down", "neutral": "sideways"}
    by_word = {
        word: [each.timeframe for each in found if sentiment_label(each.score) == label]
        for label, word in words.items()
    }
    parts = [f"{word} on {listed(timeframes)}" for word, timeframes in by_word.items() if timeframes]
    return f"The trend is {', '.join(parts)}."


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


TIMEFRAME = "1h"
FEWEST_VALUES, LOOKED_BACK = 30, 240
FACTOR_WHERE_UNKNOWN = 0.8
LOST_AT_MOST = 0.4


def weigh_volatility(facts: Facts) -> Finding:
    values = atr(facts.bars.get(TIMEFRAME, ()))[-LOOKED_BACK:]
    if len(values) < FEWEST_VALUES:
        return Finding("There are too few hourly candles to judge the volatility by.")
    rank = percentile(values, values[-1])
    percent = round(100 * expm1(values[-1]), 3)
    text = (
        f"The average hourly range is {percent}%, which is {describe_volatility(rank)} (percentile"
        f" {round(100 * rank)})."
    )
    return Finding(
        text, 0.0, VolatilityEvidence(TIMEFRAME, percent, round(rank, 3), round(confidence_factor(rank), 3))
    )


def confidence_factor(rank: float) -> float:
    """Volatility above the median reduces the confidence, by up to 40%."""
    return 1 - LOST_AT_MOST * max(0.0, 2 * rank - 1)


def describe_volatility(rank: float) -> str:
    if rank >= 0.8:
        return "unusually wide"
    return "unusually narrow" if rank <= 0.2 else "typical"
