"""Where prices have been going: two averages of each timeframe, in units of its average true range. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, tanh

from news.analysis.answer import Finding, TimeframeTrend, TrendEvidence
from news.analysis.facts import Bar, Facts
from news.analysis.indicators import atr, closes, ema
from news.labels import sentiment_label

WEIGHTS = {"15m": 0.2, "1h": 0.3, "4h": 0.3, "1d": 0.2}
FAST, SLOW, SLOPE_OVER = 20, 50, 5
# An average that begins at its own first values is still settling there.
FEWEST = SLOW + 10


def weigh(facts: Facts) -> Finding:
    """A timeframe without enough candles counts as neutral."""
    price = facts.price
    if price is None:
        return Finding("There are no candles yet to see a trend in.")
    found = [
        trend_of(timeframe, weight, bars, price)
        for timeframe, weight in WEIGHTS.items()
        if len(bars := facts.bars.get(timeframe, ())) >= FEWEST
    ]
    if not found:
        return Finding(f"A trend needs {FEWEST} closed candles, and no timeframe has them yet.")
    score = sum(each.weight * each.score for each in found)
    return Finding(describe(found), score, TrendEvidence(found))


def trend_of(timeframe: str, weight: float, bars: Sequence[Bar], price: float) -> TimeframeTrend:
    values = closes(bars)
    fast, slow, unit = ema(values, FAST), ema(values, SLOW), atr(bars)[-1]
    if not unit:
        return TimeframeTrend(timeframe, weight, 0.0, 0.0, 0.0, 0.0)
    spread = (fast[-1] - slow[-1]) / unit
    slope = (fast[-1] - fast[-1 - SLOPE_OVER]) / unit
    position = (log(price) - fast[-1]) / unit
    score = tanh(0.5 * spread + 0.3 * slope + 0.2 * position)
    rounded = (round(number, 3) for number in (score, spread, slope, position))
    return TimeframeTrend(timeframe, weight, *rounded)


def describe(found: list[TimeframeTrend]) -> str:
    words = {"bullish": "up", "bearish": "down", "neutral": "sideways"}
    by_word = {
        word: [each.timeframe for each in found if sentiment_label(each.score) == label]
        for label, word in words.items()
    }
    said = [f"{word} on {', '.join(timeframes)}" for word, timeframes in by_word.items() if timeframes]
    return f"The trend points {'; '.join(said)}."
