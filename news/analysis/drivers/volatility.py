"""How far prices swing, and how unusual that is. Without a direction: it scales the confidence. Pure."""

from __future__ import annotations

from math import expm1

from news.analysis.answer import Finding, VolatilityEvidence
from news.analysis.facts import Facts
from news.analysis.indicators import atr, percentile

TIMEFRAME = "1h"
FEWEST_VALUES, LOOKED_BACK = 30, 240
FACTOR_WHERE_UNKNOWN = 0.8
LOST_AT_MOST = 0.4


def weigh(facts: Facts) -> Finding:
    values = atr(facts.bars.get(TIMEFRAME, ()))[-LOOKED_BACK:]
    if len(values) < FEWEST_VALUES:
        return Finding("There are too few hourly candles to judge the volatility by.")
    rank = percentile(values, values[-1])
    percent = round(100 * expm1(values[-1]), 3)
    text = f"An hour moves {percent} % on average, {describe(rank)} (percentile {round(100 * rank)})."
    return Finding(
        text, 0.0, VolatilityEvidence(TIMEFRAME, percent, round(rank, 3), round(confidence_factor(rank), 3))
    )


def confidence_factor(rank: float) -> float:
    """The upper half of what is usual takes from the confidence, up to 40 %."""
    return 1 - LOST_AT_MOST * max(0.0, 2 * rank - 1)


def describe(rank: float) -> str:
    if rank >= 0.8:
        return "which is unusually much"
    return "which is unusually little" if rank <= 0.2 else "as usual"
