"""Prices at which the market turned before, and how far it usually moves."""

from collections.abc import Iterable, Iterator, Sequence
from math import exp, log

from analysis.drivers.candles import atr
from core.times import iso_date

from .answer import Bands, DayRange, PriceLevel, PriceLevels
from .facts import AnalysedBar, Facts

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
