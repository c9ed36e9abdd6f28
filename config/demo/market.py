"""Taking away what the simulated market left: exactly that."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Q

from instruments.catalogue import catalogue
from instruments.kinds import DEMO, default_feed
from market.engine.checkpoints import tick_of
from market.engine.series import change_kind, lock_series, wanted_kind
from market.engine.source import feeds_of
from market.engine.store import Row, read_minutes_since, to_ms, write_candles
from market.engine.witness import Ending
from market.models import Candle, EngineState, FormerQuote, FormingMinute, LastQuote
from market.prices.timeframes import TIMEFRAMES
from signals_feed.watching.ending import end_signals

OF_DEMO = (
    Q(source=DEMO)
    | Q(source__startswith=f"{DEMO}+")
    | Q(source__endswith=f"+{DEMO}")
    | Q(source__contains=f"+{DEMO}+")
)


def remove_market(now_ms: int) -> None:
    catalogue.load_now()
    for row in LastQuote.objects.filter(source=DEMO).select_related("instrument"):
        _remove_quote(row, now_ms)
    FormerQuote.objects.filter(source=DEMO).delete()
    FormingMinute.objects.filter(OF_DEMO).delete()
    _remove_candles()
    # The numbers that went with the quotes are given again, and must not be taken for the old ones.
    EngineState.objects.update(epoch="")


def _remove_candles() -> None:
    """A coarse one that is of the replay too is made anew of the replay's own minutes, if they are kept."""
    of_demo = Candle.objects.filter(OF_DEMO, simulated=True)
    mixed = of_demo.exclude(source=DEMO).exclude(timeframe="1m").select_related("instrument")
    remade = [row for candle in mixed if (row := _remade(candle)) is not None]
    of_demo.delete()
    write_candles(remade)


def _remade(mixed: Candle) -> Row | None:
    facts, opened_ms = catalogue.known(mixed.instrument.symbol), to_ms(mixed.opened_at)
    if facts is None:
        return None
    end_ms = opened_ms + TIMEFRAMES[mixed.timeframe]
    since = read_minutes_since(facts, opened_ms, simulated=True)
    own = [each for each in since if each.opened_ms < end_ms and DEMO not in each.source.split("+")]
    if not own:
        return None
    candle = own[0].opened_at(opened_ms)
    for minute in own[1:]:
        candle.take(minute)
    return facts.id, mixed.timeframe, candle, mixed.basis


def _remove_quote(row: LastQuote, now_ms: int) -> None:
    """Signals of people that stood on it end with it, at its price. A real quote from before comes back."""
    facts = catalogue.known(row.instrument.symbol)
    if facts is None or wanted_kind(facts):
        row.delete()
        return
    next_source = feeds_of(facts.source, facts.fallback, default_feed(settings.DEMO))[0]
    last = tick_of(row, facts.symbol)
    lock_series(facts.id)
    end_signals(Ending(facts.symbol, last, row.seq, row.source, next_source), [], "")
    if FormerQuote.objects.filter(pk=row.pk, simulated=False).exists():
        change_kind(facts, now_ms, simulated=False)
    else:
        row.delete()
