"""Candles and last quotes to and from the database, in batches and off the event loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from instruments.catalogue import InstrumentFacts
from market.models import Candle as CandleRow
from market.models import LastQuote
from market.prices.candles import Candle
from market.prices.history import KEPT
from market.prices.ticks import Tick

Row = tuple[int, str, Candle]
"""Instrument id, timeframe, candle."""

BATCH = 5_000
COLUMNS = (
    "instrument_id",
    "timeframe",
    "opened_at",
    "open",
    "high",
    "low",
    "close",
    "volume",
    "ask_high",
    "ask_low",
    "basis",
)


def moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def write_candles(rows: Iterable[Row], basis: str) -> int:
    """Insert, or replace what is there: writing the same candle twice changes nothing."""
    updated = ", ".join(f"{column} = excluded.{column}" for column in COLUMNS[3:])
    statement = (
        f"INSERT INTO {CandleRow._meta.db_table} ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) "  # noqa: S608
        f"ON CONFLICT (instrument_id, timeframe, opened_at) DO UPDATE SET {updated}"
    )
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
            for instrument_id, timeframe, c in batch
        ]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(statement, values)
        written += len(batch)
    return written


def write_quotes(quotes: Iterable[tuple[int, Tick]]) -> None:
    LastQuote.objects.bulk_create(
        [
            LastQuote(instrument_id=instrument_id, bid=tick.bid, ask=tick.ask, quoted_at=moment(tick.time_ms))
            for instrument_id, tick in sorted(quotes, key=lambda quote: quote[0])
        ],
        update_conflicts=True,
        unique_fields=["instrument"],
        update_fields=["bid", "ask", "quoted_at"],
    )


def read_candles(facts: InstrumentFacts, timeframe: str, count: int = KEPT) -> list[Candle]:
    """The last candles, oldest first."""
    newest_first = _candle_values(instrument_id=facts.id, timeframe=timeframe)[:count]
    return [_candle(values) for values in reversed(newest_first)]


def read_minutes_since(since_ms: int) -> Iterator[tuple[int, Candle]]:
    """Today's 1m candles of all instruments: what the forming candles go on from."""
    rows = _candle_values("instrument_id", timeframe="1m", opened_at__gte=moment(since_ms)).order_by(
        "opened_at"
    )
    for *values, instrument_id in rows:
        yield instrument_id, _candle(values)


def read_quotes() -> dict[int, LastQuote]:
    return LastQuote.objects.in_bulk()


def last_closed(timeframe: str) -> dict[int, int]:
    """When the last stored candle of each instrument opened."""
    newest = (
        CandleRow.objects.filter(timeframe=timeframe).values_list("instrument_id").annotate(Max("opened_at"))
    )
    return {instrument_id: int(opened_at.timestamp() * 1000) for instrument_id, opened_at in newest}


def _candle_values(*more: str, **filters: Any) -> Any:
    fields = ("opened_at", "open", "high", "low", "close", "volume", "ask_high", "ask_low", *more)
    return CandleRow.objects.filter(**filters).order_by("-opened_at").values_list(*fields)


def _candle(values: Iterable[Any]) -> Candle:
    opened_at, *prices, volume, ask_high, ask_low = values
    open_, high, low, close = (float(price) for price in prices)
    return Candle(
        int(opened_at.timestamp() * 1000),
        open_,
        high,
        low,
        close,
        float(volume),
        float(high if ask_high is None else ask_high),
        float(low if ask_low is None else ask_low),
    )
