"""Minutes into the database, and with them every coarser candle that they are part of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from instruments.catalogue import InstrumentFacts
from market.engine.store import FLOATS, Row, candle_of, moment, write_candles
from market.imports import IMPORTED
from market.models import Candle as CandleRow
from market.prices.candles import Candle
from market.prices.timeframes import COARSER, TIMEFRAMES, interval_start

DAY_MS = TIMEFRAMES["1d"]


def store_minutes(facts: InstrumentFacts, minutes: Sequence[Candle], basis: str, now_ms: int) -> None:
    """Closed minutes in order, within a transaction: what is coarser is made of all that are stored then,
    those that came another way too."""
    for minute in minutes:
        minute.source = IMPORTED
    write_candles((facts.id, "1m", minute, basis) for minute in minutes)
    for day_ms, of_day in groupby(minutes, lambda minute: interval_start(minute.opened_ms, DAY_MS)):
        changed = [minute.opened_ms for minute in of_day]
        stored = minutes_of_day(facts, day_ms)
        rebuilt = [
            (timeframe, candle)
            for timeframe, span_ms in COARSER.items()
            for candle in _aggregate(stored, span_ms)
            if changed[0] < candle.opened_ms + span_ms and candle.opened_ms <= changed[-1]
        ]
        write_candles(_closed(facts, rebuilt, basis, now_ms))


def minutes_of_day(facts: InstrumentFacts, day_ms: int) -> list[Candle]:
    rows = CandleRow.objects.filter(
        instrument_id=facts.id,
        simulated=False,
        timeframe="1m",
        opened_at__gte=moment(day_ms),
        opened_at__lt=moment(day_ms + DAY_MS),
    )
    in_order = rows.order_by("opened_at").annotate(**FLOATS)
    return [candle_of(values) for values in in_order.values_list("opened_at", *FLOATS, "source")]


def _aggregate(minutes: list[Candle], span_ms: int) -> Iterator[Candle]:
    for opened_ms, group in groupby(minutes, lambda minute: interval_start(minute.opened_ms, span_ms)):
        first, *later = group
        candle = first.opened_at(opened_ms)
        for minute in later:
            candle.take(minute)
        yield candle


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
