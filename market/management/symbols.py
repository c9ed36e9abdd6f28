"""The instrument that a command names."""

from difflib import get_close_matches

from django.core.management.base import CommandError

from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts


def find_instrument(symbol: str) -> InstrumentFacts:
    """An instrument of the database, active or not, whatever the case of its symbol."""
    catalogue.load_now()
    by_symbol = {facts.symbol: facts for facts in catalogue.all()}
    if facts := by_symbol.get(symbol.upper()):
        return facts
    close = get_close_matches(symbol.upper(), by_symbol, n=1)
    hint = f"Did you mean {close[0]}?" if close else "manage.py load_instruments adds instruments."
    raise CommandError(f"There is no instrument {symbol}. {hint}")
