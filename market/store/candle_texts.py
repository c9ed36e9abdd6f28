"""Stored candles as the text that is sent, written by the database itself: making it here would keep the
event loop waiting for Python's lock, and take twice as long."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection

from core.times import moment
from market.prices.candles import TIMEFRAMES, VOLUME_DECIMALS, PriceBar
from market.prices.history import CandleRow, encode_row, row_of, row_of_csv

from .candle_rows import OF_SERIES, OPENED_MS, READ, TABLE, leave_out

PART = 1_000
"""Candles that are read at once."""

# No index says which are withheld. A page ends here though it has less, or none: a query over millions of
# them would outlast the patience of its request.
MOST_LOOKED_AT = 100_000

# With fifteen digits, a decimal and the float next to it are written alike.
MOST_DIGITS = 15

# Rows that are written here hold Python's lock for half a millisecond, then others have it.
WRITTEN_AT_ONCE = 50
OTHERS_HAVE_S = 0.0005


class TextForm(NamedTuple):
    """How a row is written: what stands before each of its six fields, and behind the last."""

    marks: tuple[str, ...]
    separator: str
    encode: Callable[[CandleRow, str], str]
    """The same of a row that the database cannot round as it is rounded here, and what follows its fields."""
    basis_marks: tuple[str, str]
    """What stands before what it is made of, and before whether it is partial."""
    has_basis: bool = False

    @property
    def more(self) -> str:
        """What follows the fields, as the database says it."""
        find = "strpos" if connection.vendor == "postgresql" else "instr"
        before, between = self.basis_marks
        basis = BASIS.format(find=find)
        return f"'{before}' || {basis} || '{between}' || {PARTIAL}"


# Of what contains several, the first.
BASIS = (
    "CASE WHEN basis IN ('trades', 'import') THEN basis"
    " WHEN {find}('+' || source || '+', '+import+') > 0 THEN 'import'"
    " WHEN by_venue THEN 'venue' ELSE 'ticks' END"
)
PARTIAL = "CASE WHEN partial THEN 'true' ELSE 'false' END"
AS_JSON = TextForm(
    ('{"time":"', '","open":', ',"high":', ',"low":', ',"close":', ',"volume":', "}"),
    ",",
    lambda row, more: encode_row(row, more).decode(),
    (',"basis":"', '","partial":'),
)
AS_CSV = TextForm(("", ",", ",", ",", ",", ",", "\n"), "", row_of_csv, (",", ","))


class StoredSeries(NamedTuple):
    instrument_id: int
    digits: int
    timeframe: str
    simulated: bool
    withheld: tuple[str, ...] = ()
    """Sources whose candles are left out."""


class PageBounds(NamedTuple):
    last_ms: int | None
    """When the last candle of the page opened, or what was looked at ended; None where there is none."""
    has_more: bool


class CandlesText(NamedTuple):
    text: str
    candles: int
    is_last: bool = False


def find_bounds(series: StoredSeries, after_ms: int, end_ms: int, limit: int) -> PageBounds:
    """Of the candles that opened after one moment and before another, oldest first."""
    stop_ms = _end_of_look(series, after_ms, end_ms) if series.withheld else None
    which, parameters = _which(series, after_ms)
    which, parameters = f"{which} AND opened_at < %s", [*parameters, _at(stop_ms or end_ms)]
    found = _ask_ms(f"opened_at {{0}}{which} ORDER BY opened_at LIMIT 2 OFFSET {limit - 1}", parameters)
    if stop_ms is not None and len(found) < 2:
        return PageBounds(stop_ms - 1, has_more=True)
    if not found:
        found = _ask_ms(f"max(opened_at) {{0}}{which}", parameters)
    return PageBounds(found[0], len(found) > 1)


def _end_of_look(series: StoredSeries, after_ms: int, end_ms: int) -> int | None:
    """When the first candle opened that is not looked at for this page; None if all are."""
    which, parameters = _which(series._replace(withheld=()), after_ms)
    parameters.append(_at(end_ms))
    question = f"opened_at {{0}}{which} AND opened_at < %s ORDER BY opened_at LIMIT 1 OFFSET {MOST_LOOKED_AT}"
    return next(iter(_ask_ms(question, parameters)), None)


def read_parts(series: StoredSeries, after_ms: int, last_ms: int, form: TextForm) -> Iterator[CandlesText]:
    """The candles that opened after one moment and not after another. Nothing is held between two parts."""
    while after_ms < last_ms:
        end_ms = min(last_ms, after_ms + PART * TIMEFRAMES[series.timeframe])
        part = _read_part(series, after_ms, end_ms, form)
        if part is not None:
            yield part._replace(is_last=end_ms == last_ms)
            after_ms = end_ms
        elif (first_ms := _find_first(series, end_ms, last_ms)) is not None:
            after_ms = first_ms - 1
        else:
            # What was to come is past its retention by now.
            return


def read_more(series: StoredSeries, since_ms: int) -> dict[int, str]:
    """Of each candle that opened since then, what follows its fields in JSON."""
    which, parameters = _which(series, since_ms - 1)
    columns = f"{OPENED_MS[connection.vendor]}, {AS_JSON.more}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {TABLE} {OF_SERIES}{which}", parameters)  # noqa: S608 - names of our own
        return dict(cursor.fetchall())


def _find_first(series: StoredSeries, after_ms: int, last_ms: int) -> int | None:
    which, parameters = _which(series, after_ms)
    (first_ms,) = _ask_ms(f"min(opened_at) {{0}}{which} AND opened_at <= %s", [*parameters, _at(last_ms)])
    return first_ms


def _ask_ms(question: str, parameters: Sequence[Any]) -> list[int | None]:
    column, _, rest = question.format(f"FROM {TABLE} {OF_SERIES}").partition(" ")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_in_ms(connection.vendor, column)} {rest}", parameters)
        return [time_ms for (time_ms,) in cursor.fetchall()]


def _in_ms(vendor: str, column: str) -> str:
    return OPENED_MS[vendor].replace("opened_at", column)


def _read_part(series: StoredSeries, after_ms: int, end_ms: int, form: TextForm) -> CandlesText | None:
    which, parameters = _which(series, after_ms)
    which, parameters = f"{which} AND opened_at <= %s ORDER BY opened_at", [*parameters, _at(end_ms)]
    statement = _statement(connection.vendor, series.digits, form)
    with connection.cursor() as cursor:
        cursor.execute(statement.format(which=which), parameters)
        (text,) = cursor.fetchone()
    if text is None:
        return None
    if UNWRITTEN in text or _more_digits(series.digits).search(text):
        return _write_part(series, which, parameters, form)
    return CandlesText(_finished(text), text.count(form.marks[-1]))


def _write_part(
    series: StoredSeries, which: str, parameters: Sequence[Any], form: TextForm
) -> CandlesText | None:
    read = READ.format(
        opened_ms=OPENED_MS[connection.vendor], more=f", {form.more}" if form.has_basis else ", ''"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"{read}{which}", parameters)
        rows = cursor.fetchall()
    written = []
    for start in range(0, len(rows), WRITTEN_AT_ONCE):
        some = rows[start : start + WRITTEN_AT_ONCE]
        written += [form.encode(row_of(PriceBar(*row), series.digits), more) for *row, more in some]
        time.sleep(OTHERS_HAVE_S)
    return CandlesText(form.separator.join(written), len(rows)) if rows else None


def _finished(text: str) -> str:
    """SQLite keeps a space between date and time. PostgreSQL leaves a bare point where no decimal follows,
    and a float has one."""
    if connection.vendor == "sqlite":
        return text.replace(" ", "T")
    return text.replace(".,", ".0,").replace(".}", ".0}").replace(".\n", ".0\n")


def _at(time_ms: int) -> Any:
    return connection.ops.adapt_datetimefield_value(moment(time_ms))


def _which(series: StoredSeries, after_ms: int) -> tuple[str, list[Any]]:
    conditions, sources = leave_out(series.withheld)
    key = series.instrument_id, series.simulated, series.timeframe
    return f" AND opened_at > %s{conditions}", [*key, _at(after_ms), *sources]


@lru_cache(maxsize=64)
def _statement(vendor: str, digits: int, form: TextForm) -> str:
    """All rows as one text; what the database might write otherwise than it is written here is unwritten."""
    line, join = (
        (_pg_line, "string_agg(line, '{0}' ORDER BY opened_at)")
        if vendor == "postgresql"
        else (_sqlite_line, "group_concat(line, '{0}')")
    )
    rows = f"SELECT opened_at, {line(form, digits)} AS line FROM {TABLE} {OF_SERIES}{{which}}"  # noqa: S608 - names of our own
    return f"SELECT {join.format(form.separator)} FROM ({rows}) AS part"  # noqa: S608 - names of our own


UNWRITTEN = "?"
OHLC = ("open", "high", "low", "close")


def _pg_line(form: TextForm, digits: int) -> str:
    at = """to_char(opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
    fields = [at, *(_pg_number(name, digits) for name in OHLC), _pg_number("volume", VOLUME_DECIMALS)]
    marks = [f"'{_braced(mark)}'" for mark in form.marks]
    more = [form.more] if form.has_basis else []
    line = " || ".join([*chain.from_iterable(zip(marks, fields, strict=False)), *more, marks[-1]])
    exact = (
        *(_pg_exact(name, digits) for name in OHLC),
        _pg_exact("volume", VOLUME_DECIMALS),
        f"high < 1e{MOST_DIGITS - digits}",
        f"volume < 1e{MOST_DIGITS}",
        # The decimals of a larger volume are more digits than a float has.
        f"(volume < 1e{MOST_DIGITS - VOLUME_DECIMALS} OR volume = round(volume))",
    )
    return f"CASE WHEN {' AND '.join(exact)} THEN {line} ELSE '{UNWRITTEN}' END"


def _pg_number(name: str, decimals: int) -> str:
    rounded = f"round({name}, {decimals})" if decimals else f"round(round({name}, 0), 1)"
    return f"rtrim({rounded}::text, '0')"


def _pg_exact(name: str, decimals: int) -> str:
    """A float may be rounded to another side than its decimal, so what has more digits is rounded here."""
    return f"{name} = round({name}, {decimals})"


def _sqlite_line(form: TextForm, digits: int) -> str:
    """Prices by how many digits they may have before the point: with room for more, SQLite takes longer.
    Each with one digit more than an instrument's: where it shows, the price has more than it should."""
    largest = MOST_DIGITS - digits - 1
    cases = [
        f"WHEN high < 1e{size} AND {condition} THEN {_printed(form, digits + size + 1, volume_as, volume)}"
        for condition, volume_as, volume in VOLUMES
        for size in (*(size for size in (2, 5) if size < largest), largest)
    ]
    return f"CASE WHEN low < {LEAST} THEN '{UNWRITTEN}' {' '.join(cases)} ELSE '{UNWRITTEN}' END"


def _printed(form: TextForm, digits: int, volume_as: str, volume: str) -> str:
    """In one call: SQLite takes longer to begin one than to write a number."""
    time_mark, *price_marks, volume_mark, last_mark = map(_braced, form.marks)
    prices = "".join(f"{mark}%%!.{digits}g" for mark in price_marks)
    shown, more = ("%%s", f", {form.more}") if form.has_basis else ("", "")
    template = f"{time_mark}%%.19sZ{prices}{volume_mark}{volume_as}{shown}{last_mark}"
    return f"printf('{template}', opened_at, {', '.join(OHLC)}, {volume}{more})"


LEAST = 1e-4
"""What is smaller SQLite writes with an exponent."""
NEAR = 0.4
"""Of a whole number: nearer to the middle of two, a float may be rounded to another side than its decimal."""
SCALED = f"volume * 1e{VOLUME_DECIMALS}"
NEAREST = f"CAST({SCALED} + 0.5 AS integer)"
VOLUMES = (
    (f"volume < 1e{MOST_DIGITS} AND volume = CAST(volume AS integer)", "%%d.0", "volume"),
    # A sum of floats is seldom the nearest to its decimal; a division gives that. The decimals of a larger
    # volume are more digits than a float has.
    (
        f"volume < 1e{MOST_DIGITS - VOLUME_DECIMALS} AND volume >= {LEAST} "
        f"AND {SCALED} - {NEAREST} BETWEEN -{NEAR} AND {NEAR}",
        f"%%!.{MOST_DIGITS}g",
        f"{NEAREST} / 1e{VOLUME_DECIMALS}",
    ),
)
"""Of a volume: when it is so, how it is printed, and what of it."""


@lru_cache(maxsize=16)
def _more_digits(digits: int) -> re.Pattern[str]:
    """A price with more decimals than its instrument's; a float without decimals has a zero."""
    return re.compile(rf"\.\d{{{digits + 1}}}\d*," if digits else r"\.(?:0\d|[1-9])\d*,", re.ASCII)


def _braced(mark: str) -> str:
    """As `str.format` takes it for itself."""
    return mark.replace("{", "{{").replace("}", "}}")
