"""The last quote of what was imported, so that an instrument that nobody quotes yet can be read."""

from __future__ import annotations

from django.db import transaction

from instruments.catalogue import InstrumentFacts
from market.engine.series import present_kind
from market.engine.store import moment
from market.models import FormerQuote, LastQuote
from market.prices.ticks import Tick

from .storing import SOURCE


@transaction.atomic
def keep_quote(facts: InstrumentFacts, tick: Tick) -> bool:
    """As the last real one, if it is newer than that; False if it is not. While an instrument's prices are
    simulated it waits until they are real."""
    bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
    quote = {"bid": bid, "ask": ask, "quoted_at": moment(tick.time_ms), "source": SOURCE}
    if not present_kind(facts.id):
        row, _ = LastQuote.objects.select_for_update().get_or_create(instrument_id=facts.id)
        rows = LastQuote.objects.filter(pk=row.pk)
    else:
        former = FormerQuote.objects.select_for_update().filter(pk=facts.id, simulated=False).first()
        if former is None:
            FormerQuote.objects.create(instrument_id=facts.id, simulated=False, **quote)
            return True
        rows, row = FormerQuote.objects.filter(pk=former.pk), former
    if row.quoted_at is not None and row.quoted_at >= quote["quoted_at"]:
        return False
    rows.update(**quote)
    return True
