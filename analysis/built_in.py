"""The built-in model, which always answers: it weighs the drivers' findings, finds the levels, and sums all
up in sentences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, fsum, log

from analysis.drivers import (
    FACTOR_WHERE_UNKNOWN,
    atr,
    weigh_news,
    weigh_order_flow,
    weigh_signals,
    weigh_trend,
    weigh_volatility,
)
from core.times import iso_date, iso_ms
from market.prices import TIMEFRAMES
from news.labels import BULLISH_FROM, sentiment_label

from .answer import (
    Analysis,
    AsOf,
    Bands,
    DayRange,
    Driver,
    Finding,
    NewsDriver,
    OrderFlowDriver,
    PriceLevel,
    PriceLevels,
    SignalsDriver,
    TrendDriver,
    VolatilityDriver,
    VolatilityEvidence,
)
from .facts import AnalysedBar, Facts, known_by_then

# Prices at which the market turned before, and how far it usually moves.
SWINGS_OF = ("1h", "4h")
LOOKED_BACK = 240

# A swing is the highest high, or the lowest low, among this many bars before and after it.
WING = 3
SHOWN = 3

# Turns closer together than half an hourly range are one level.
TOGETHER = 0.5


def levels_of(facts: Facts) -> PriceLevels:
    price, digits = facts.price, facts.digits
    ranges = atr(facts.bars.get("1h", ()))
    unit = ranges[-1] if ranges else 0.0
    bands = [round(price * exp(steps * unit), digits) for steps in (2, 1, -1, -2)] if price and unit else None
    return PriceLevels(
        supports=_nearest(facts, price, unit, -1),
        resistances=_nearest(facts, price, unit, 1),
        atr_bands=Bands(*bands) if bands else None,
        day=_day(facts.day, digits) if facts.day else None,
    )


def turns(bars: Sequence[AnalysedBar]) -> Iterator[float]:
    """The last bars are never turns, because the bars after them are not known yet."""
    for place in range(WING, len(bars) - WING):
        around = bars[place - WING : place + WING + 1]
        if bars[place].high == max(bar.high for bar in around):
            yield log(bars[place].high)
        if bars[place].low == min(bar.low for bar in around):
            yield log(bars[place].low)


def clusters(distances: Iterable[float], width: float) -> Iterator[list[float]]:
    """Groups neighbouring distances, beginning with the nearest."""
    cluster: list[float] = []
    for distance in sorted(distances):
        if cluster and distance - cluster[0] > width:
            yield cluster
            cluster = []
        cluster.append(distance)
    if cluster:
        yield cluster


def _nearest(facts: Facts, price: float | None, unit: float, side: int) -> list[PriceLevel]:
    """Only the side of the current price counts: a broken resistance is a support."""
    if price is None:
        return []
    here = log(price)
    found = [turn for timeframe in SWINGS_OF for turn in turns(facts.bars.get(timeframe, ())[-LOOKED_BACK:])]
    distances = [side * (turn - here) for turn in found if side * (turn - here) > 0]
    levels = [
        PriceLevel(round(exp(here + side * sum(cluster) / len(cluster)), facts.digits), len(cluster))
        for cluster in clusters(distances, TOGETHER * unit)
    ]
    # Rounding may put a level on the price itself.
    return [level for level in levels if side * (level.price - price) > 0][:SHOWN]


def _day(day: AnalysedBar, digits: int) -> DayRange:
    return DayRange(iso_date(day.opened_ms), round(day.high, digits), round(day.low, digits))


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
