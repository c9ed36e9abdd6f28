"""What an analysis says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec


def iso_ms(time_ms: int) -> str:
    """2026-11-21T12:00:00.250Z"""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def iso_date(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d}"


class WeighedItem(msgspec.Struct, frozen=True):
    id: int
    title: str
    sentiment: str
    sentiment_score: float
    timestamp: str
    relevance: Literal["symbol", "category"]
    side: Literal[1, -1]
    """Times its score: good news for the yen is bad for USDJPY."""
    weight: float
    """Its share in the driver's score."""


class NewsEvidence(msgspec.Struct, frozen=True):
    considered: int
    items: list[WeighedItem]
    """The weightiest."""


class TimeframeTrend(msgspec.Struct, frozen=True):
    timeframe: str
    weight: float
    score: float
    spread: float
    """Between the two averages, like slope and position in units of the average true range."""
    slope: float
    position: float


class TrendEvidence(msgspec.Struct, frozen=True):
    timeframes: list[TimeframeTrend]


class VolatilityEvidence(msgspec.Struct, frozen=True):
    timeframe: str
    atr_percent: float
    percentile: float
    confidence_factor: float


class WindowDelta(msgspec.Struct, frozen=True):
    minutes: int
    bid_volume: float
    ask_volume: float
    delta: float
    count: int


class OrderFlowEvidence(msgspec.Struct, frozen=True):
    source: Literal["trades", "tick_rule"]
    cumulative_delta: float | None
    since: str
    windows: list[WindowDelta]


class SignalsEvidence(msgspec.Struct, frozen=True):
    buys: int
    sells: int
    r_at_risk: float


Evidence = NewsEvidence | TrendEvidence | VolatilityEvidence | OrderFlowEvidence | SignalsEvidence


class Finding(msgspec.Struct, frozen=True):
    """What a driver found: a score from -1 to 1, a sentence, and what both come from; no score, no data."""

    text: str
    score: float | None = None
    evidence: Evidence | None = None


class Driver(msgspec.Struct, frozen=True):
    name: str
    available: bool
    weight: float
    direction: str
    score: float
    contribution: float
    text: str
    evidence: Evidence | None


class PriceLevel(msgspec.Struct, frozen=True):
    price: float
    touches: int


class Bands(msgspec.Struct, frozen=True):
    upper_2: float
    upper_1: float
    lower_1: float
    lower_2: float


class DayRange(msgspec.Struct, frozen=True):
    date: str
    high: float
    low: float


class PriceLevels(msgspec.Struct, frozen=True):
    supports: list[PriceLevel]
    resistances: list[PriceLevel]
    atr_bands: Bands | None
    day: DayRange | None


class AsOf(msgspec.Struct, frozen=True):
    """How recent each input was; None where there was none."""

    quote: str | None
    candles: str | None
    order_flow: str | None
    news: str | None
    signals: str | None


class Analysis(msgspec.Struct, frozen=True):
    symbol: str
    model: str
    generated_at: str
    market_state: str
    price: float | None
    direction: str
    score: float
    confidence: float
    summary: str
    weights_sum: float
    drivers: list[Driver]
    levels: PriceLevels
    as_of: AsOf
