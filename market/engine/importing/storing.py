"""Imported minutes into the database, with every coarser candle that they are part of, and the last quote."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from core.times import MINUTE_MS, epoch_ms, moment
from instruments.facts import InstrumentFacts
from instruments.sources import IMPORTED, PUSH
from market.engine.venues.venue_history import LONGEST_MS
from market.models import Candle, FormerQuote, LastQuote
from market.prices.candles import COARSER, DAY_MS, PriceBar, interval_start
from market.prices.records import Tick
from market.store.candle_rows import FLOATS, CandleToWrite, candle_of, write_candles
from market.store.series import present_kind

from .minutes import CoarserBars, CoarserKey, DayBefore

MADE = ("source", "partial", "by_venue")


class Changed(NamedTuple):
    """Which coarser candles."""

    made: set[CoarserKey]
    left: set[CoarserKey]
    """Those that hold one of the minutes and stay as they were: others of their minutes were dropped."""


def store_minutes(facts: InstrumentFacts, minutes: Sequence[PriceBar], basis: str, now_ms: int) -> Changed:
    """Closed minutes in order, within a transaction; what is coarser is made of all that are stored then."""
    for minute in minutes:
        minute.source = IMPORTED
    changed = Changed(set(), set())
    for day_ms, of_day in groupby(minutes, lambda minute: interval_start(minute.opened_ms, DAY_MS)):
        written = list(of_day)
        bars = coarser_of_day(facts, day_ms)
        known = minutes_of_day(facts, day_ms) if any(bars.values()) else []
        before = DayBefore(bars, known, now_ms)
        write_candles((facts.id, "1m", minute, basis) for minute in written)
        between = written[0].opened_ms, written[-1].opened_ms
        rebuilt = before.rebuild(minutes_of_day(facts, day_ms), *between, facts.hours)
        write_candles(_closed(facts, rebuilt.made, basis, now_ms))
        changed.made.update((timeframe, candle.opened_ms) for timeframe, candle in rebuilt.made)
        changed.left.update(rebuilt.left)
    return changed


def minutes_of_day(facts: InstrumentFacts, day_ms: int) -> list[PriceBar]:
    rows = _of_day(facts, day_ms).filter(timeframe="1m")
    in_order = rows.order_by("opened_at").annotate(**FLOATS)
    return [candle_of(values) for values in in_order.values_list("opened_at", *FLOATS, *MADE)]


def coarser_of_day(facts: InstrumentFacts, day_ms: int) -> CoarserBars:
    bars: CoarserBars = {timeframe: {} for timeframe in COARSER}
    rows = _of_day(facts, day_ms).filter(timeframe__in=COARSER).annotate(**FLOATS)
    for timeframe, *values in rows.values_list("timeframe", "opened_at", *FLOATS, *MADE):
        candle = candle_of(values)
        bars[timeframe][candle.opened_ms] = candle
    return bars


def _of_day(facts: InstrumentFacts, day_ms: int) -> QuerySet[Candle]:
    return Candle.objects.filter(
        instrument_id=facts.id,
        simulated=False,
        opened_at__gte=moment(day_ms),
        opened_at__lt=moment(day_ms + DAY_MS),
    )


def _closed(
    facts: InstrumentFacts, candles: list[tuple[str, PriceBar]], basis: str, now_ms: int
) -> Iterator[CandleToWrite]:
    """Those whose interval is over, or ends before the market opens again, and those that were stored before,
    which have to fit their minutes too."""
    is_open, reopens_ms = facts.hours.is_open(now_ms), facts.hours.next_open(now_ms)
    until_ms = now_ms if is_open else reopens_ms
    for timeframe, candle in candles:
        is_over = until_ms is None or candle.opened_ms + COARSER[timeframe] <= until_ms
        if is_over or _is_stored(facts, timeframe, candle):
            yield facts.id, timeframe, candle, basis


def _is_stored(facts: InstrumentFacts, timeframe: str, candle: PriceBar) -> bool:
    opened_at = moment(candle.opened_ms)
    own = Candle.objects.filter(instrument_id=facts.id, simulated=False, timeframe=timeframe)
    return own.filter(opened_at=opened_at).exists()


def since_when_a_venue_fills(facts: InstrumentFacts, now_ms: int) -> int:
    """It is asked for the minutes after its last quote, and these judge signals as those of files do not."""
    row = LastQuote.objects.filter(pk=facts.id, simulated=False).first()
    if row is None or row.quoted_at is None or row.source.partition(":")[0] in ("", PUSH, IMPORTED):
        return now_ms
    return max(interval_start(epoch_ms(row.quoted_at), MINUTE_MS), now_ms - LONGEST_MS)


@transaction.atomic
def keep_quote(facts: InstrumentFacts, tick: Tick) -> bool:
    """As the last real quote, if it is newer than that; False if not. While prices are simulated it waits. It
    takes no place of what a feed said: signals count and end at that, and staff must not choose it."""
    at = moment(tick.time_ms)
    bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
    quote: dict[str, Any] = {"bid": bid, "ask": ask, "quoted_at": at, "source": IMPORTED}
    if present_kind(facts.id):
        known = FormerQuote.objects.filter(pk=facts.id, simulated=False)
        if not known.exists():
            FormerQuote.objects.create(instrument_id=facts.id, simulated=False, **quote)
            return True
        return bool(known.filter(quoted_at__lt=at, source=IMPORTED).update(**quote))
    LastQuote.objects.get_or_create(instrument_id=facts.id)
    older = Q(quoted_at=None) | Q(quoted_at__lt=at, source=IMPORTED)
    return bool(LastQuote.objects.filter(older, pk=facts.id).update(**quote))
