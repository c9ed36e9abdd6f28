"""Minutes into the database, and with them every coarser candle that they are part of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from django.db.models import QuerySet

from instruments.catalogue import InstrumentFacts
from market.engine.store import FLOATS, Row, candle_of, moment, write_candles
from market.imports import IMPORTED
from market.models import Candle as CandleRow
from market.prices.candles import Candle
from market.prices.timeframes import COARSER, TIMEFRAMES, interval_start

from .coarser import Bars, DayBefore, Key

DAY_MS = TIMEFRAMES["1d"]


class Changed(NamedTuple):
    """Which coarser candles."""

    made: set[Key]
    left: set[Key]
    """Those that hold one of the minutes and stay as they were: others of their minutes were dropped."""


def store_minutes(facts: InstrumentFacts, minutes: Sequence[Candle], basis: str, now_ms: int) -> Changed:
    """Closed minutes in order, within a transaction: what is coarser is made of all that are stored then,
    those that came another way too."""
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


def minutes_of_day(facts: InstrumentFacts, day_ms: int) -> list[Candle]:
    rows = _of_day(facts, day_ms).filter(timeframe="1m")
    in_order = rows.order_by("opened_at").annotate(**FLOATS)
    return [candle_of(values) for values in in_order.values_list("opened_at", *FLOATS, "source")]


def coarser_of_day(facts: InstrumentFacts, day_ms: int) -> Bars:
    bars: Bars = {timeframe: {} for timeframe in COARSER}
    rows = _of_day(facts, day_ms).filter(timeframe__in=COARSER).annotate(**FLOATS)
    for timeframe, *values in rows.values_list("timeframe", "opened_at", *FLOATS, "source"):
        candle = candle_of(values)
        bars[timeframe][candle.opened_ms] = candle
    return bars


def _of_day(facts: InstrumentFacts, day_ms: int) -> QuerySet[CandleRow]:
    return CandleRow.objects.filter(
        instrument_id=facts.id,
        simulated=False,
        opened_at__gte=moment(day_ms),
        opened_at__lt=moment(day_ms + DAY_MS),
    )


def _closed(
    facts: InstrumentFacts, candles: list[tuple[str, Candle]], basis: str, now_ms: int
) -> Iterator[Row]:
    """Those whose interval is over, or which the market's next session does not reach. Of the others only
    those are known that were stored before: they have to fit their minutes too."""
    is_open, reopens_ms = facts.hours.is_open(now_ms), facts.hours.next_open(now_ms)
    until_ms = now_ms if is_open else reopens_ms
    for timeframe, candle in candles:
        is_over = until_ms is None or candle.opened_ms + COARSER[timeframe] <= until_ms
        if is_over or _is_stored(facts, timeframe, candle):
            yield facts.id, timeframe, candle, basis


def _is_stored(facts: InstrumentFacts, timeframe: str, candle: Candle) -> bool:
    opened_at = moment(candle.opened_ms)
    own = CandleRow.objects.filter(instrument_id=facts.id, simulated=False, timeframe=timeframe)
    return own.filter(opened_at=opened_at).exists()
