"""The unit of `rank_r`, from the minutes that are stored of an instrument."""

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from django.core.cache import cache
from django.db.models import F, Max, Window
from django.db.models.functions import Coalesce, Greatest, Lag, Least

from market.models import Candle
from market.store import present_kind

from .purses import JUMP_IN_UNITS, JUMPS_OF_DAYS

# What is known for less time may never have shown how it jumps.
KNOWN_FOR = timedelta(days=90)
STEP = Decimal("0.00000001")


def rank_unit_of_hour(instrument_id: int, at: datetime) -> Decimal | None:
    """It reads half a million minutes, so not for each of those who publish at once."""
    key = f"rank-unit-{instrument_id}-{at:%Y%m%d%H}"
    unit: Decimal | None = cache.get_or_set(key, lambda: rank_unit(instrument_id, at), timeout=3600)
    return unit


def rank_unit(instrument_id: int, at: datetime) -> Decimal | None:
    """None for an instrument whose minutes do not go back far enough: its signals are not ranked."""
    minutes = Candle.objects.filter(
        instrument=instrument_id,
        simulated=present_kind(instrument_id),
        timeframe="1m",
        opened_at__gte=at - timedelta(days=JUMPS_OF_DAYS),
        opened_at__lt=at,
    ).order_by()
    if not minutes.filter(opened_at__lte=at - KNOWN_FOR).exists():
        return None
    # No tick moves the price further than its minute does from the last price before it.
    before = Coalesce(Window(Lag("close"), order_by="opened_at"), F("open"))
    moves = minutes.annotate(move=Greatest("high", before) - Least("low", before))
    largest = Decimal(moves.aggregate(largest=Max("move"))["largest"])
    return (largest / JUMP_IN_UNITS).quantize(STEP, ROUND_HALF_UP)
