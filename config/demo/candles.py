"""The past of the instruments that the simulated market prices, made once. What goes by while the service is
down the engine makes up for when it starts, because only it knows what had been sent."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import transaction

from instruments.catalogue import InstrumentFacts, catalogue
from instruments.kinds import DEMO, default_feed
from market.engine import checkpoints
from market.engine.simulated_past import make_past
from market.engine.source import feeds_of
from market.engine.store import to_ms
from market.models import Candle, LastQuote
from market.prices.timeframes import MINUTE_MS, interval_start

Progress = Callable[[str], None]


def seed_candles(now_ms: int, progress: Progress) -> None:
    """The past up to the last full minute of those that have none."""
    catalogue.load_now()
    until_ms = interval_start(now_ms, MINUTE_MS)
    # One that has been priced before has the past that it had, whoever priced it.
    known = set(LastQuote.objects.values_list("pk", flat=True))
    new = [facts for facts in priced_by_demo() if facts.id not in known and not _has_candles(facts)]
    for number, facts in enumerate(new, 1):
        progress(f"Simulating the market: {facts.symbol} ({number} of {len(new)})")
        _seed_instrument(facts, until_ms)


def priced_by_demo() -> list[InstrumentFacts]:
    """Those whose source is the simulated market."""
    default = default_feed(settings.DEMO)
    return [
        facts for facts in catalogue.active() if feeds_of(facts.source, facts.fallback, default)[0] == DEMO
    ]


def simulated_since() -> dict[int, int]:
    """For each instrument whose prices are simulated now, since when they have been; 0 for always."""
    rows = LastQuote.objects.filter(simulated=True).values_list("pk", "kind_since")
    return {pk: 0 if since is None else to_ms(since) for pk, since in rows}


@transaction.atomic
def _seed_instrument(facts: InstrumentFacts, until_ms: int) -> None:
    quote = make_past(facts, until_ms)
    if quote is not None:
        checkpoints.write_quote(facts.id, quote, DEMO)


def _has_candles(facts: InstrumentFacts) -> bool:
    return Candle.objects.filter(instrument_id=facts.id).exists()
