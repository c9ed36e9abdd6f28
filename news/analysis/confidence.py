"""How sure a direction is, from 0 to 1. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from news.labels import BULLISH_FROM

from .answer import Driver

# A score this far out is as clear as it gets.
CLEAR_AT = 0.5
MARKET_FACTORS = {"open": 1.0, "closed": 0.7, "stale": 0.5, "unquoted": 0.3}


def confidence_of(
    drivers: Sequence[Driver], score: float, weights_sum: float, market: str, volatility_factor: float
) -> float:
    """What is missing, contradicts itself, swings wildly or is not fresh takes from it."""
    clear = clarity(score)
    agreed = agreement([driver.contribution for driver in drivers])
    return round(weights_sum * (clear + agreed) / 2 * MARKET_FACTORS[market] * volatility_factor, 2)


def clarity(score: float) -> float:
    """Of a neutral answer: how near it is to zero. Of another: how far from it."""
    distance = abs(score)
    if distance < BULLISH_FROM:
        return 1 - distance / BULLISH_FROM
    return min(1.0, distance / CLEAR_AT)


def agreement(contributions: Sequence[float]) -> float:
    """1 where all pull the same way, 0 where they cancel each other out."""
    pull = fsum(abs(each) for each in contributions)
    return abs(fsum(contributions)) / pull if pull else 1.0
