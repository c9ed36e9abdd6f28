"""Whose data are stored of an instrument, and how what may not be handed on is left out of it."""

from collections.abc import Sequence

from django.db import connection

from market.models import Candle, LastQuote
from market.prices.candles import TIMEFRAMES
from market.prices.history import KEPT


def stored_sources(instrument_id: int) -> set[str]:
    """As candles keep them, and as far back as they are served: `kraken+binance`."""
    found = set(LastQuote.objects.filter(pk=instrument_id).values_list("source", flat=True))
    for timeframe in TIMEFRAMES:
        newest = Candle.objects.filter(instrument=instrument_id, timeframe=timeframe).order_by("-opened_at")
        found.update(newest.values_list("source", flat=True)[:KEPT])
    return found


def leave_out(withheld: Sequence[str]) -> tuple[str, list[str]]:
    """Conditions on candles, and their parameters: none of it is of one of these sources."""
    conditions, parameters = "", list[str]()
    find = "strpos" if connection.vendor == "postgresql" else "instr"
    for name in withheld:
        lead = name.partition(":")[0]
        # As `instruments.handing_on.is_covered` has it.
        for part in dict.fromkeys((f"+{name}+", f"+{name}:", f"+{lead}+")):
            conditions += f" AND {find}('+' || source || '+', %s) = 0"
            parameters.append(part)
    return conditions, parameters
