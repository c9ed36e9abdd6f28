"""The model that always answers: fixed weights over what the drivers found. Pure."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

from market.prices.timeframes import TIMEFRAMES
from news.labels import sentiment_label

from .answer import Analysis, AsOf, Driver, Finding, VolatilityEvidence
from .confidence import confidence_of
from .drivers import news, order_flow, signals, trend, volatility
from .facts import Facts, known_by_then
from .levels import levels_of
from .moments import iso_ms
from .summary import summarise

IDENTIFIER = "tickwire-analyst-1"
DRIVERS: tuple[tuple[str, float, Callable[[Facts], Finding]], ...] = (
    ("trend", 0.35, trend.weigh),
    ("news", 0.30, news.weigh),
    ("signals", 0.20, signals.weigh),
    ("order_flow", 0.15, order_flow.weigh),
    # It weighs nothing by itself: it scales the confidence.
    ("volatility", 0.0, volatility.weigh),
)


def analyse(facts: Facts) -> Analysis:
    facts = known_by_then(facts)
    drivers = [driver_of(name, weight, weigh(facts)) for name, weight, weigh in DRIVERS]
    score = round(fsum(driver.contribution for driver in drivers), 3) + 0.0
    weights_sum = round(fsum(driver.weight for driver in drivers), 3)
    price, levels = facts.price, levels_of(facts)
    confidence = confidence_of(drivers, score, weights_sum, state_of(facts), volatility_factor(drivers))
    return Analysis(
        symbol=facts.symbol,
        model=IDENTIFIER,
        generated_at=iso_ms(facts.at_ms),
        market_state=facts.state,
        price=None if price is None else round(price, facts.digits),
        direction=sentiment_label(score),
        score=score,
        confidence=confidence,
        summary=summarise(facts, drivers, levels, score, confidence),
        weights_sum=weights_sum,
        drivers=drivers,
        levels=levels,
        as_of=as_of(facts),
    )


def driver_of(name: str, weight: float, finding: Finding) -> Driver:
    """What is missing weighs nothing, rather than leaving its weight to the others."""
    is_there = finding.score is not None
    # Adding zero makes the negative one of a mirror image an ordinary zero.
    score = round(min(1.0, max(-1.0, finding.score or 0.0)), 3) + 0.0
    weight = weight if is_there else 0.0
    contribution = round(weight * score, 4) + 0.0
    return Driver(
        name, is_there, weight, sentiment_label(score), score, contribution, finding.text, finding.evidence
    )


def volatility_factor(drivers: list[Driver]) -> float:
    for driver in drivers:
        if isinstance(driver.evidence, VolatilityEvidence):
            return driver.evidence.confidence_factor
    return volatility.FACTOR_WHERE_UNKNOWN


def state_of(facts: Facts) -> str:
    return "unquoted" if facts.quote is None else facts.state


def as_of(facts: Facts) -> AsOf:
    def latest(moments: list[int]) -> str | None:
        return iso_ms(max(moments)) if moments else None

    # The finest tells best: at a market's close a longer interval has not ended yet.
    finest = min((name for name, bars in facts.bars.items() if bars), key=TIMEFRAMES.__getitem__, default="")
    return AsOf(
        quote=latest([facts.quote.time_ms] if facts.quote else []),
        candles=latest([facts.bars[finest][-1].opened_ms + TIMEFRAMES[finest]] if finest else []),
        order_flow=latest([facts.flow.last_ms] if facts.flow else []),
        news=latest([item.published_ms for item in facts.news]),
        signals=latest([signal.published_ms for signal in facts.signals]),
    )
