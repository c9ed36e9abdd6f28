"""Closed candles to and from the database, in batches and off the event loop."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import FloatField, Max
from django.db.models.functions import Cast

from instruments.catalogue import InstrumentFacts
from market.models import Candle as CandleRow
from market.prices.candles import Candle
from market.prices.history import KEPT

logger = logging.getLogger(__name__)

Row = tuple[int, str, Candle, str]
"""Instrument id, timeframe, candle, basis."""


BATCH = 5_000
PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")
# Read as floats: making Decimals of seventy thousand rows would take a second of every start.
FLOATS = {f"{name}_": Cast(name, FloatField()) for name in PRICES}
COLUMNS = ("instrument_id", "timeframe", "opened_at", *PRICES, "basis")


def moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def to_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


UPSERT = (
    f"INSERT INTO {CandleRow._meta.db_table} ({', '.join(COLUMNS)}) "  # noqa: S608 - names of our own
    f"VALUES ({', '.join(['%s'] * len(COLUMNS))}) ON CONFLICT (instrument_id, timeframe, opened_at) "
    f"DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in COLUMNS[3:])}"
)


def write_candles(rows: Iterable[Row]) -> int:
    """Insert, or replace what is there: writing the same candle twice changes nothing."""
    adapt = connection.ops.adapt_datetimefield_value
    written = 0
    pending = iter(rows)
    # Sorted, so that two writers of the same rows lock them in the same order.
    while batch := sorted(islice(pending, BATCH), key=lambda row: (row[0], row[1], row[2].opened_ms)):
        values = [
            (
                instrument_id,
                timeframe,
                adapt(moment(c.opened_ms)),
                *(c.open, c.high, c.low, c.close, c.volume, c.ask_high, c.ask_low),
                basis,
            )
            for instrument_id, timeframe, c, basis in batch
        ]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(UPSERT, values)
        written += len(batch)
    return written


def read_candles(facts: InstrumentFacts, timeframe: str, count: int = KEPT) -> list[Candle]:
    """The last candles, oldest first."""
    newest_first = _candle_values(instrument_id=facts.id, timeframe=timeframe)[:count]
    return [candle_of(values) for values in reversed(newest_first)]


def read_minutes_since(facts: InstrumentFacts, since_ms: int) -> list[Candle]:
    """The 1m candles from a moment on, oldest first: what the forming candles go on from."""
    minutes = _candle_values(instrument_id=facts.id, timeframe="1m", opened_at__gte=moment(since_ms))
    return [candle_of(values) for values in minutes.order_by("opened_at")]


def last_closed(timeframe: str) -> dict[int, int]:
    """When the last stored candle of each instrument opened."""
    newest = (
        CandleRow.objects.filter(timeframe=timeframe).values_list("instrument_id").annotate(Max("opened_at"))
    )
    return {instrument_id: to_ms(opened_at) for instrument_id, opened_at in newest}


def _candle_values(**filters: Any) -> Any:
    rows = CandleRow.objects.filter(**filters).order_by("-opened_at")
    return rows.annotate(**FLOATS).values_list("opened_at", *FLOATS)


def candle_of(values: Sequence[Any]) -> Candle:
    opened_at, open_, high, low, close, volume, ask_high, ask_low = values
    ask_high, ask_low = (high, low) if ask_high is None else (ask_high, ask_low)
    return Candle(to_ms(opened_at), open_, high, low, close, volume, ask_high, ask_low)
