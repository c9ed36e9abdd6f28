"""Stored candles as the text that is sent, written by the database itself: making it here would keep the
event loop waiting for Python's lock, and take twice as long."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection

from core.times import moment
from market.prices.candles import VOLUME_DECIMALS, PriceBar
from market.prices.history import CandleRow, encode_row, row_of, row_of_csv

from .candle_rows import OF_SERIES, OPENED_MS, READ, TABLE

PART = 500
"""Candles that are read at once."""

# With fifteen digits, a decimal and the float next to it are written alike.
MOST_DIGITS = 15

# Rows that are written here hold Python's lock for half a millisecond, then others have it.
WRITTEN_AT_ONCE = 50
OTHERS_HAVE_S = 0.0005


class TextForm(NamedTuple):
    """How a row is written: what stands before each of its six fields, and behind the last."""

    marks: Sequence[str]
    separator: str
    encode: Callable[[CandleRow], str]
    """The same of a row that the database cannot round as it is rounded here."""


AS_JSON = TextForm(
    ('{"time":"', '","open":', ',"high":', ',"low":', ',"close":', ',"volume":', "}"),
    ",",
    lambda row: encode_row(row).decode(),
)
AS_CSV = TextForm(("", ",", ",", ",", ",", ",", "\n"), "", row_of_csv)


class StoredSeries(NamedTuple):
    instrument_id: int
    digits: int
    timeframe: str
    simulated: bool
    withheld: tuple[str, ...] = ()
    """Sources whose candles are left out."""


class PageBounds(NamedTuple):
    """Where a page of candles ends, and where each part of it does: the opens of the last ones."""

    ends_ms: Sequence[int]
    has_more: bool


def find_bounds(series: StoredSeries, after_ms: int, end_ms: int, limit: int) -> PageBounds:
    """Of the candles that opened after one moment and before another, oldest first."""
    which, parameters = _which(series, after_ms)
    page = f"SELECT opened_at FROM {TABLE} {OF_SERIES}{which} AND opened_at < %s "  # noqa: S608 - names of our own
    numbered = (
        "SELECT opened_at, row_number() OVER (ORDER BY opened_at) AS number, count(*) OVER () AS total "  # noqa: S608 - names of our own
        f"FROM ({page} ORDER BY opened_at LIMIT %s) AS page"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {OPENED_MS[connection.vendor]}, total FROM ({numbered}) AS numbered "  # noqa: S608 - names of our own
            "WHERE number <= %s AND (number %% %s = 0 OR number IN (total, %s)) ORDER BY opened_at",
            [*parameters, _at(end_ms), limit + 1, limit, PART, limit],
        )
        found = cursor.fetchall()
    return PageBounds([opened_ms for opened_ms, _ in found], any(total > limit for _, total in found))


def read_texts(
    series: StoredSeries, after_ms: int, ends_ms: Sequence[int], form: TextForm
) -> Iterator[tuple[str, int]]:
    """Part by part, and how many candles are in each. Nothing is held between two parts."""
    for end_ms in ends_ms:
        yield _read_text(series, after_ms, end_ms, form)
        after_ms = end_ms


def _read_text(series: StoredSeries, after_ms: int, last_ms: int, form: TextForm) -> tuple[str, int]:
    which, parameters = _which(series, after_ms)
    which, parameters = f"{which} AND opened_at <= %s", [*parameters, _at(last_ms)]
    statement = _statement(connection.vendor, series.digits, form)
    with connection.cursor() as cursor:
        cursor.execute(statement.format(which=which), parameters)
        text, count, is_exact = cursor.fetchone()
    if not count:
        # They were there a moment ago: what is past its retention goes.
        return "", 0
    return (_with_decimals(text), count) if is_exact else _write(series, which, parameters, form)


def _write(series: StoredSeries, which: str, parameters: Sequence[Any], form: TextForm) -> tuple[str, int]:
    read = READ.format(opened_ms=OPENED_MS[connection.vendor])
    with connection.cursor() as cursor:
        cursor.execute(f"{read}{which} ORDER BY opened_at", parameters)
        rows = cursor.fetchall()
    written = []
    for start in range(0, len(rows), WRITTEN_AT_ONCE):
        some = rows[start : start + WRITTEN_AT_ONCE]
        written += [form.encode(row_of(PriceBar(*row), series.digits)) for row in some]
        time.sleep(OTHERS_HAVE_S)
    return form.separator.join(written), len(rows)


def _with_decimals(text: str) -> str:
    """The database leaves a bare point where no decimal follows: a float has one."""
    return text.replace(".,", ".0,").replace(".}", ".0}").replace(".\n", ".0\n")


def _at(time_ms: int) -> Any:
    return connection.ops.adapt_datetimefield_value(moment(time_ms))


def _which(series: StoredSeries, after_ms: int) -> tuple[str, list[Any]]:
    which = " AND opened_at > %s"
    parameters = [series.instrument_id, series.simulated, series.timeframe, _at(after_ms)]
    find = "strpos" if connection.vendor == "postgresql" else "instr"
    for name in series.withheld:
        lead = name.partition(":")[0]
        # As `instruments.handing_on.is_covered` has it.
        for part in dict.fromkeys((f"+{name}+", f"+{name}:", f"+{lead}+")):
            which += f" AND {find}('+' || source || '+', %s) = 0"
            parameters.append(part)
    return which, parameters


@lru_cache(maxsize=64)
def _statement(vendor: str, digits: int, form: TextForm) -> str:
    """All rows as one text, and whether each of them is written as it would be here."""
    write, is_exact, joined, every, at = (
        (_pg_number, _pg_is_exact, "string_agg(line, '{0}' ORDER BY opened_at)", "bool_and", PG_TIME)
        if vendor == "postgresql"
        else (_sqlite_number, _sqlite_is_exact, "group_concat(line, '{0}')", "min", SQLITE_TIME)
    )
    prices = ("open", "high", "low", "close")
    fields = [at, *(write(name, digits) for name in prices), write("volume", VOLUME_DECIMALS)]
    quoted = [f"'{mark}'".replace("{", "{{").replace("}", "}}") for mark in form.marks]
    line = " || ".join([*(part for pair in zip(quoted, fields, strict=False) for part in pair), quoted[-1]])
    exact = [
        *(is_exact(name, digits) for name in prices),
        is_exact("volume", VOLUME_DECIMALS),
        f"high < 1e{MOST_DIGITS - digits}",
        f"volume < 1e{MOST_DIGITS}",
        # The decimals of a larger volume are more digits than a float has.
        f"(volume < 1e{MOST_DIGITS - VOLUME_DECIMALS} OR volume = round(volume))",
    ]
    return (
        f"SELECT {joined.format(form.separator)}, count(*), {every}(is_exact) "  # noqa: S608 - names of our own
        f"FROM (SELECT opened_at, {line} AS line, {' AND '.join(exact)} AS is_exact "
        f"FROM {TABLE} {OF_SERIES}{{which}} ORDER BY opened_at) AS c"
    )


PG_TIME = """to_char(opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
SQLITE_TIME = "substr(opened_at, 1, 10) || 'T' || substr(opened_at, 12, 8) || 'Z'"

# A float and its decimal may be rounded to different sides where they are near the middle of two.
NEAR_MIDDLE = 0.4


def _pg_number(name: str, decimals: int) -> str:
    rounded = f"round({name}, {decimals})" if decimals else f"round(round({name}, 0), 1)"
    return f"rtrim({rounded}::text, '0')"


def _pg_is_exact(name: str, decimals: int) -> str:
    return f"abs({name} - round({name}, {decimals})) <= {NEAR_MIDDLE / 10**decimals:.10f}"


def _sqlite_number(name: str, decimals: int) -> str:
    rounded = f"printf('%%.{decimals}f', {name})" if decimals else f"printf('%%.1f', round({name}))"
    return f"rtrim({rounded}, '0')"


def _sqlite_is_exact(name: str, decimals: int) -> str:
    scaled = f"{name} * 1e{decimals}"
    return f"abs({scaled} - CAST({scaled} + 0.5 AS integer)) <= {NEAR_MIDDLE}"
