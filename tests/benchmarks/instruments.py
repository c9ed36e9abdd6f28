"""Any number of instruments, written at once."""

from __future__ import annotations

from instruments.catalogue import catalogue
from instruments.models import Instrument
from tests.factories import make_instrument


def make_many(symbols: list[str], **fields: object) -> list[Instrument]:
    """Like `make_instrument`, which would load all that there are after each."""
    first = make_instrument(symbols[0], **fields)
    kept = {field.attname: getattr(first, field.attname) for field in Instrument._meta.concrete_fields}
    del kept["id"], kept["symbol"]
    Instrument.objects.bulk_create(Instrument(symbol=symbol, **kept) for symbol in symbols[1:])
    catalogue.load_now()
    return list(Instrument.objects.filter(symbol__in=symbols).order_by("symbol"))
