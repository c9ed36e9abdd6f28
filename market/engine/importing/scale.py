"""Prices of a file beside those that are stored: a unit that is wrong by a power of ten shows in them."""

from collections.abc import Sequence
from datetime import timedelta
from statistics import median

from core.times import moment
from instruments.facts import InstrumentFacts
from market.engine.files.format import BadFile
from market.models import Candle
from market.prices.records import Tick

NEAR = timedelta(days=30)
MOST_TIMES = 10

# The finest, and the finest that is kept whatever its age.
LOOKED_AT = ("1m", "1h")


def refuse_another_scale(facts: InstrumentFacts, path: str, ticks: Sequence[Tick], point: float) -> None:
    near = nearest_candle(facts, ticks[0].time_ms)
    if near is None:
        return
    price, known = median(tick.bid for tick in ticks), float(near.close)
    if max(price, known) > MOST_TIMES * min(price, known):
        raise BadFile(
            f"{path} has prices near {price:.{facts.digits}f} in units of {point:.10g}, and the candle "
            f"stored nearest, of {near.opened_at:%Y-%m-%d %H:%M} UTC, closes at {known:.{facts.digits}f}. "
            "Name the right unit with --point, or the same if it is the candle that is wrong."
        )


def nearest_candle(facts: InstrumentFacts, at_ms: int) -> Candle | None:
    at, own = moment(at_ms), Candle.objects.filter(instrument_id=facts.id, simulated=False)
    near = [
        candle
        for of in (own.filter(timeframe=timeframe) for timeframe in LOOKED_AT)
        for side in (
            of.filter(opened_at__range=(at - NEAR, at)).order_by("-opened_at"),
            of.filter(opened_at__range=(at, at + NEAR)).order_by("opened_at"),
        )
        for candle in side[:1]
    ]
    return min(near, key=lambda candle: abs(candle.opened_at - at), default=None)
