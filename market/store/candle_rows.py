"""Closed candles to and from the database, in batches and off the event loop."""

import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import FloatField
from django.db.models.functions import Cast

from core.times import epoch_ms, moment
from instruments.facts import InstrumentFacts
from instruments.sources import is_simulated
from market.models import Candle
from market.prices.candles import TIMEFRAMES, PriceBar, interval_start
from market.prices.history import KEPT

from . import partitions

logger = logging.getLogger(__name__)
CandleToWrite = tuple[int, str, PriceBar, str]
"""Instrument id, timeframe, candle, basis. The candle's source tells whether it is simulated."""
BATCH = 5_000
PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")

# Read as floats: making Decimals of seventy thousand rows would take a second of every start.
FLOATS = {f"{name}_": Cast(name, FloatField()) for name in PRICES}
TABLE = Candle._meta.db_table
KEY = ("instrument_id", "simulated", "timeframe", "opened_at")
VALUES = (*PRICES, "basis", "source")
COLUMNS = (*KEY, *VALUES)
TYPES = ("bigint", "boolean", "text", "timestamptz", *["numeric"] * len(PRICES), "text", "text")
INSERT = f"INSERT INTO {TABLE} ({', '.join(COLUMNS)})"
REPLACE = (
    f"ON CONFLICT ({', '.join(KEY)}) "
    f"DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in VALUES)}"
)
UPSERT = f"{INSERT} VALUES ({', '.join(['%s'] * len(COLUMNS))}) {REPLACE}"

# What is there already is not written again: an update leaves a dead row behind.
UPSERT_ARRAYS = (
    f"{INSERT} SELECT * FROM unnest({', '.join(f'%s::{name}[]' for name in TYPES)}) {REPLACE} "  # noqa: S608 - names of our own
    f"WHERE ({', '.join(f'{TABLE}.{column}' for column in VALUES)}) "
    f"IS DISTINCT FROM ({', '.join(f'excluded.{column}' for column in VALUES)})"
)
OPENED_MS = {
    "postgresql": "extract(epoch FROM opened_at)::bigint * 1000",
    "sqlite": "CAST(strftime('%%s', opened_at) AS integer) * 1000",
}
READ_AS = ("open", "high", "low", "close", "volume", "coalesce(ask_high, high)", "coalesce(ask_low, low)")
READ = (
    f"SELECT {{opened_ms}}, {', '.join(f'CAST({name} AS double precision)' for name in READ_AS)}, source "  # noqa: S608 - names of our own
    f"FROM {TABLE} WHERE instrument_id = %s AND simulated = %s AND timeframe = %s"
)


def write_candles(rows: Iterable[CandleToWrite]) -> int:
    """Insert, or replace what is there: writing the same candle twice changes nothing."""
    written = 0
    pending = iter(rows)
    while batch := list(islice(pending, BATCH)):
        values = _values(_last_of_each(batch))
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                _make_months(batch)
                *columns, sources = zip(*values, strict=True)
                cursor.execute(UPSERT_ARRAYS, [*map(_array, columns), list(sources)])
            else:
                cursor.executemany(UPSERT, values)
        written += len(batch)
    return written


def _last_of_each(batch: list[CandleToWrite]) -> list[CandleToWrite]:
    """One statement cannot touch a row twice, and two writers must lock the same rows in the same order."""
    last = {(row[0], is_simulated(row[2].source), row[1], row[2].opened_ms): row for row in batch}
    return [last[key] for key in sorted(last)]


def _make_months(batch: list[CandleToWrite]) -> None:
    days = {interval_start(row[2].opened_ms, TIMEFRAMES["1d"]) for row in batch if row[1] == "1m"}
    try:
        partitions.ensure(map(moment, days))
    except OperationalError as error:
        logger.warning("Some 1m candles wait for a table of their month: %s", error)


def _values(rows: list[CandleToWrite]) -> list[tuple[Any, ...]]:
    adapt = connection.ops.adapt_datetimefield_value
    at = {time_ms: str(adapt(moment(time_ms))) for time_ms in {row[2].opened_ms for row in rows}}
    return [
        (
            instrument_id,
            is_simulated(c.source),
            timeframe,
            at[c.opened_ms],
            *(c.open, c.high, c.low, c.close, c.volume, c.ask_high, c.ask_low),
            basis,
            c.source,
        )
        for instrument_id, timeframe, c, basis in rows
    ]


def _array(column: Iterable[Any]) -> str:
    """Spelled out here: half again as fast as adapting a list, and each float arrives digit by digit."""
    return f"{{{','.join(map(str, column))}}}"


def read_candles(
    facts: InstrumentFacts,
    timeframe: str,
    count: int = KEPT,
    *,
    simulated: bool = False,
    before_ms: int | None = None,
) -> list[PriceBar]:
    """The last candles of a kind that opened before a moment, oldest first."""
    key, newest = (facts.id, simulated, timeframe), "ORDER BY opened_at DESC LIMIT %s"
    if before_ms is None:
        return _read(newest, *key, count)[::-1]
    before = connection.ops.adapt_datetimefield_value(moment(before_ms))
    return _read(f"AND opened_at < %s {newest}", *key, before, count)[::-1]


def read_minutes_since(facts: InstrumentFacts, since_ms: int, *, simulated: bool = False) -> list[PriceBar]:
    """The 1m candles from a moment on, oldest first: what the forming candles go on from."""
    since = connection.ops.adapt_datetimefield_value(moment(since_ms))
    return _read("AND opened_at >= %s ORDER BY opened_at", facts.id, simulated, "1m", since)


def _read(which: str, *parameters: Any) -> list[PriceBar]:
    """Past the ORM, which would take three times as long to convert the rows."""
    read = READ.format(opened_ms=OPENED_MS[connection.vendor])
    with connection.cursor() as cursor:
        cursor.execute(f"{read} {which}", parameters)
        return [PriceBar(*row) for row in cursor.fetchall()]


def candle_of(values: Sequence[Any]) -> PriceBar:
    opened_at, open_, high, low, close, volume, ask_high, ask_low, *source = values
    ask_high, ask_low = (high, low) if ask_high is None else (ask_high, ask_low)
    return PriceBar(epoch_ms(opened_at), open_, high, low, close, volume, ask_high, ask_low, *source)
