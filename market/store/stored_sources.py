"""Whose data are stored of an instrument, as far back as candles are served."""

from market.models import Candle, LastQuote
from market.prices.candles import TIMEFRAMES
from market.prices.history import KEPT


def stored_sources(instrument_id: int) -> set[str]:
    """As candles keep them: `kraken+binance`."""
    found = set(LastQuote.objects.filter(pk=instrument_id).values_list("source", flat=True))
    for timeframe in TIMEFRAMES:
        newest = Candle.objects.filter(instrument=instrument_id, timeframe=timeframe).order_by("-opened_at")
        found.update(newest.values_list("source", flat=True)[:KEPT])
    return found
