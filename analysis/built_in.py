"""The built-in model, which always answers: it weighs the drivers' findings and sums them up in sentences."""

from collections.abc import Callable, Sequence
from math import fsum

from analysis.drivers.candles import FACTOR_WHERE_UNKNOWN, weigh_trend, weigh_volatility
from analysis.drivers.order_flow import weigh_order_flow
from analysis.drivers.published import weigh_news, weigh_signals
from core.times import iso_ms
from market.prices import TIMEFRAMES
from news.labels import BULLISH_FROM, sentiment_label

from .answer import (
    Analysis,
    AsOf,
    Driver,
    Finding,
    NewsDriver,
    OrderFlowDriver,
    PriceLevels,
    SignalsDriver,
    TrendDriver,
    VolatilityDriver,
    VolatilityEvidence,
)
from .facts import Facts, known_by_then
from .levels import levels_of

IDENTIFIER = "tickwire-analyst-1"
DRIVERS: tuple[tuple[Callable[..., Driver], float, Callable[[Facts], Finding]], ...] = (
    (TrendDriver, 0.35, weigh_trend),
    (NewsDriver, 0.30, weigh_news),
    (SignalsDriver, 0.20, weigh_signals),
    (OrderFlowDriver, 0.15, weigh_order_flow),
    # This one has no weight: it scales the confidence.
    (VolatilityDriver, 0.0, weigh_volatility),
)


def analyse(facts: Facts) -> Analysis:
    facts = known_by_then(facts)
    drivers = [driver_of(make, weight, weigh(facts)) for make, weight, weigh in DRIVERS]
    score = round(fsum(driver.contribution for driver in drivers), 3) + 0.0
    weights_sum = round(fsum(driver.weight for driver in drivers), 3)
    price, levels = facts.price, levels_of(facts)
    confidence = confidence_of(facts, drivers, score, weights_sum)
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


def driver_of(make: Callable[..., Driver], weight: float, finding: Finding) -> Driver:
    """A driver without data has no weight, and the others do not inherit it."""
    is_there = finding.score is not None
    # Adding zero turns the negative zero of a mirror image into an ordinary one.
    score = round(min(1.0, max(-1.0, finding.score or 0.0)), 3) + 0.0
    weight = weight if is_there else 0.0
    return make(
        available=is_there,
        weight=weight,
        direction=sentiment_label(score),
        score=score,
        contribution=round(weight * score, 4) + 0.0,
        text=finding.text,
        evidence=finding.evidence,
    )


def as_of(facts: Facts) -> AsOf:
    def latest(moments: list[int]) -> str | None:
        return iso_ms(max(moments)) if moments else None

    # The finest timeframe is the most recent: when a market closes, longer intervals have not ended.
    finest = min((name for name, bars in facts.bars.items() if bars), key=TIMEFRAMES.__getitem__, default="")
    return AsOf(
        quote=latest([facts.quote.time_ms] if facts.quote else []),
        candles=latest([facts.bars[finest][-1].opened_ms + TIMEFRAMES[finest]] if finest else []),
        order_flow=latest([facts.flow.last_ms] if facts.flow else []),
        news=latest([item.published_ms for item in facts.news]),
        signals=latest([signal.published_ms for signal in facts.signals]),
    )


# A score this far out is as clear as it gets.
CLEAR_AT = 0.5
MARKET_FACTORS = {"open": 1.0, "closed": 0.7, "stale": 0.5, "unquoted": 0.3}


def confidence_of(facts: Facts, drivers: Sequence[Driver], score: float, weights_sum: float) -> float:
    """Missing, contradictory or old data reduce it, and so do wild swings."""
    sure = (clarity(score) + agreement([driver.contribution for driver in drivers])) / 2
    market = MARKET_FACTORS["unquoted" if facts.quote is None else facts.state]
    seen = (driver.evidence for driver in drivers if isinstance(driver.evidence, VolatilityEvidence))
    calm = next((evidence.confidence_factor for evidence in seen), FACTOR_WHERE_UNKNOWN)
    return round(weights_sum * sure * market * calm, 2)


def clarity(score: float) -> float:
    """For a neutral answer, how near it is to zero; for any other, how far from it."""
    distance = abs(score)
    if distance < BULLISH_FROM:
        return 1 - distance / BULLISH_FROM
    return min(1.0, distance / CLEAR_AT)


def agreement(contributions: Sequence[float]) -> float:
    """1 if all point the same way, 0 if they cancel each other out."""
    pull = fsum(abs(each) for each in contributions)
    return abs(fsum(contributions)) / pull if pull else 1.0


LEADS = {"bullish": "leans bullish", "bearish": "leans bearish", "neutral": "has no clear direction"}
WARNINGS = {
    "closed": "Its market is closed, so the last prices may be old.",
    "stale": "Its prices have stopped coming, so what they say may be out of date.",
}


def summarise(
    facts: Facts, drivers: Sequence[Driver], levels: PriceLevels, score: float, confidence: float
) -> str:
    lead = LEADS[sentiment_label(score)]
    signed = f"{score:+}" if score else "0.0"
    sentences = [f"{facts.symbol} {lead}, with a score of {signed} and a confidence of {confidence}."]
    if facts.quote is None:
        sentences.append("It has no quote yet.")
    elif facts.state in WARNINGS:
        sentences.append(WARNINGS[facts.state])
    # The strongest drivers come first, and those without data last.
    ordered = sorted(drivers, key=lambda driver: (not driver.available, -abs(driver.contribution)))
    sentences += [driver.text for driver in ordered]
    return " ".join([*sentences, *level_sentences(levels)])


def level_sentences(levels: PriceLevels) -> list[str]:
    near = [f"support near {levels.supports[0].price}"] if levels.supports else []
    near += [f"resistance near {levels.resistances[0].price}"] if levels.resistances else []
    return [f"Earlier turning points: {', '.join(near)}."] if near else []
