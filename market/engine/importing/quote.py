"""The last quote of what was imported, so that an instrument that nobody quotes yet can be read."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q

from instruments.catalogue import InstrumentFacts
from market.engine.series import present_kind
from market.engine.store import moment
from market.imports import IMPORTED
from market.models import FormerQuote, LastQuote
from market.prices.ticks import Tick


@transaction.atomic
def keep_quote(facts: InstrumentFacts, tick: Tick) -> bool:
    """As the last real one, if it is newer than that; False if it is not. While an instrument's prices are
    simulated it waits until they are real."""
    at = moment(tick.time_ms)
    bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
    quote: dict[str, Any] = {"bid": bid, "ask": ask, "quoted_at": at, "source": IMPORTED}
    if present_kind(facts.id):
        known = FormerQuote.objects.filter(pk=facts.id, simulated=False)
        if not known.exists():
            FormerQuote.objects.create(instrument_id=facts.id, simulated=False, **quote)
            return True
        return bool(known.filter(quoted_at__lt=at).update(**quote))
    LastQuote.objects.get_or_create(instrument_id=facts.id)
    older = LastQuote.objects.filter(Q(quoted_at=None) | Q(quoted_at__lt=at), pk=facts.id)
    return bool(older.update(**quote))
