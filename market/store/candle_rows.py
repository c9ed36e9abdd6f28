"""Closed candles to and from the database, in batches and pages and off the event loop."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple

from django.db import OperationalError, connection, transaction
from django.db.models import CharField, F, FloatField, QuerySet, Value
from django.db.models.functions import Cast, Concat, StrIndex
from django.db.models.lookups import Exact

from core.database import CompiledQuery, fetch
from core.times import MINUTE_MS, epoch_ms, moment, read_iso
from instruments.facts import InstrumentFacts, is_simulated
from market.models import Candle, LastQuote
from market.prices.candles import DAY_MS, TIMEFRAMES, VOLUME_DECIMALS, PriceBar, interval_start
from market.prices.history import KEPT, OhlcvCandle, StoredCandle

from .databases import Upsert, market_tables


def stored_sources(instrument: int, **_: Any) -> set[str]:
    """Whose data are stored of an instrument, as far back as they are served: `kraken+binance`."""
    found = set(LastQuote.objects.filter(pk=instrument).values_list("source", flat=True))
    for timeframe in TIMEFRAMES:
        newest = Candle.objects.filter(instrument=instrument, timeframe=timeframe).order_by("-opened_at")
        found.update(newest.values_list("source", flat=True)[:KEPT])
    return found


logger = logging.getLogger(__name__)
CandleToWrite = tuple[int, str, PriceBar, str]
"""Instrument id, timeframe, candle, basis. The candle's source tells whether it is simulated."""
BATCH = 5_000
PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")

# Read as floats: making Decimals of seventy thousand rows would take a second of every start.
FLOATS = {f"{name}_": Cast(name, FloatField()) for name in PRICES}
TABLE = Candle._meta.db_table
KEY = ("instrument_id", "simulated", "timeframe", "opened_at")
VALUES = (*PRICES, "basis", "partial", "by_venue", "source")
PUT_CANDLES = Upsert(Candle, *KEY, *VALUES, key_columns=len(KEY), only_changed=True)
CLOCK = [f"{minute // 60:02}:{minute % 60:02}" for minute in range(24 * 60)]
READ_AS = ("open", "high", "low", "close", "volume", "coalesce(ask_high, high)", "coalesce(ask_low, low)")
READ = (
    f"SELECT {{opened_ms}}, {', '.join(f'CAST({name} AS double precision)' for name in READ_AS)}, "  # noqa: S608 - names of our own
    f"source, partial, by_venue FROM {TABLE} WHERE instrument_id = %s AND simulated = %s AND timeframe = %s"
)


def write_candles(rows: Iterable[CandleToWrite]) -> int:
    """Insert, or replace what is there: writing the same candle twice changes nothing."""
    written = 0
    pending = iter(rows)
    while batch := list(islice(pending, BATCH)):
        written += len(batch)
        write_prepared([prepared(batch)])
    return written


class PreparedCandles(NamedTuple):
    """A batch of candles as the database takes them, made before a transaction that others wait for."""

    values: list[tuple[Any, ...]]
    days_ms: set[int]
    """Of the 1m candles."""


def prepared_batches(rows: Sequence[CandleToWrite]) -> list[PreparedCandles]:
    return [prepared(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]


def prepared(batch: Sequence[CandleToWrite]) -> PreparedCandles:
    days = {interval_start(row[2].opened_ms, DAY_MS) for row in batch if row[1] == "1m"}
    return PreparedCandles(_values(_last_of_each(batch)), days)


def write_prepared(batches: Iterable[PreparedCandles]) -> None:
    with transaction.atomic():
        for values, days_ms in batches:
            _make_months(days_ms)
            market_tables().put(PUT_CANDLES, values, spelled=_array)


def _last_of_each(batch: Sequence[CandleToWrite]) -> list[CandleToWrite]:
    """One statement cannot touch a row twice, and two writers must lock the same rows in the same order."""
    last = {(row[0], is_simulated(row[2].source), row[1], row[2].opened_ms): row for row in batch}
    return [last[key] for key in sorted(last)]


def _make_months(days_ms: Iterable[int]) -> None:
    try:
        market_tables().make_months(map(moment, days_ms))
    except OperationalError as error:
        logger.warning("Some 1m candles wait for a table of their month: %s", error)


def _values(rows: list[CandleToWrite]) -> list[tuple[Any, ...]]:
    at = _texts({row[2].opened_ms for row in rows})
    return [
        (
            instrument_id,
            is_simulated(c.source),
            timeframe,
            at[c.opened_ms],
            *(c.open, c.high, c.low, c.close, c.volume, c.ask_high, c.ask_low),
            basis,
            c.partial,
            c.by_venue,
            c.source,
        )
        for instrument_id, timeframe, c, basis in rows
    ]


def _texts(times_ms: Iterable[int]) -> dict[int, str]:
    """Candles open at whole minutes: to spell out each of them takes five times as long."""
    days: dict[int, tuple[str, str]] = {}
    texts = {}
    for time_ms in times_ms:
        day, within_ms = divmod(time_ms, DAY_MS)
        if day not in days:
            midnight = str(connection.ops.adapt_datetimefield_value(moment(day * DAY_MS)))
            date, _, rest = midnight.partition("00:00")
            days[day] = date, rest
        date, rest = days[day]
        texts[time_ms] = f"{date}{CLOCK[within_ms // MINUTE_MS]}{rest}"
    return texts


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
) -> list[StoredCandle]:
    """The last candles of a kind that opened before a moment, oldest first: their fields alone, because most
    callers need no more."""
    key, newest = (facts.id, simulated, timeframe), "ORDER BY opened_at DESC LIMIT %s"
    if before_ms is None:
        return _read(newest, *key, count)[::-1]
    before = connection.ops.adapt_datetimefield_value(moment(before_ms))
    return _read(f"AND opened_at < %s {newest}", *key, before, count)[::-1]


def read_minutes_since(
    facts: InstrumentFacts, since_ms: int, *, simulated: bool = False, before_ms: int | None = None
) -> list[PriceBar]:
    """The 1m candles from a moment on, oldest first: what the forming candles go on from."""
    adapt = connection.ops.adapt_datetimefield_value
    key, since = (facts.id, simulated, "1m"), adapt(moment(since_ms))
    if before_ms is None:
        rows = _read("AND opened_at >= %s ORDER BY opened_at", *key, since)
    else:
        before = adapt(moment(before_ms))
        rows = _read("AND opened_at >= %s AND opened_at < %s ORDER BY opened_at", *key, since, before)
    return [PriceBar(*row) for row in rows]


def _read(which: str, *parameters: Any) -> list[StoredCandle]:
    """Past the ORM, which would take three times as long to convert the rows."""
    read = READ.format(opened_ms=market_tables().opened_ms)
    return fetch(f"{read} {which}", parameters)


def candle_of(values: Sequence[Any]) -> PriceBar:
    opened_at, open_, high, low, close, volume, ask_high, ask_low, *source = values
    ask_high, ask_low = (high, low) if ask_high is None else (ask_high, ask_low)
    return PriceBar(epoch_ms(opened_at), open_, high, low, close, volume, ask_high, ask_low, *source)


PART = 1_000
"""Candles of a page that are read and encoded at once."""

# No index says which are withheld. A page ends here though it has less, or none: a query over millions of
# them would outlast the patience of its request.
MOST_LOOKED_AT = 100_000

# Read as text: to make a time of each and a text of that takes twice as long.
ON_THE_WIRE = {"opened_at_": Cast("opened_at", CharField()), **dict(islice(FLOATS.items(), 5))}
MADE_OF = ("basis", "source", "by_venue", "partial")


def without_sources(candles: QuerySet[Candle], withheld: Iterable[str]) -> QuerySet[Candle]:
    """Those that are of none of these sources, not even partly."""
    sources = Concat(Value("+"), F("source"), Value("+"))
    for name in withheld:
        lead = name.partition(":")[0]
        # As `instruments.catalogue.is_covered` has it.
        for part in dict.fromkeys((f"+{name}+", f"+{name}:", f"+{lead}+")):
            candles = candles.filter(Exact(StrIndex(sources, Value(part)), 0))
    return candles


class StoredSeries(NamedTuple):
    instrument_id: int
    digits: int
    timeframe: str
    simulated: bool
    withheld: tuple[str, ...] = ()
    """Sources whose candles are left out."""

    def opened(self, after_ms: int, before_ms: int) -> QuerySet[Candle]:
        """After one moment and before another, oldest first."""
        candles = Candle.objects.filter(
            instrument=self.instrument_id,
            simulated=self.simulated,
            timeframe=self.timeframe,
            opened_at__gt=moment(after_ms),
            opened_at__lt=moment(before_ms),
        ).order_by("opened_at")
        return without_sources(candles, self.withheld)


class PageBounds(NamedTuple):
    last_ms: int | None
    """When the last candle of the page opened, or what was looked at ended; None if there is none."""
    has_more: bool


class CandlePart(NamedTuple):
    candles: list[OhlcvCandle]
    is_last: bool = False


def find_bounds(series: StoredSeries, after_ms: int, end_ms: int, limit: int) -> PageBounds:
    """Of the candles that opened after one moment and before another, oldest first."""
    stop_ms = _end_of_look(series, after_ms, end_ms) if series.withheld else None
    opens = series.opened(after_ms, stop_ms or end_ms).values_list("opened_at", flat=True)
    found = list(opens[limit - 1 : limit + 1])
    if stop_ms is not None and len(found) < 2:
        return PageBounds(stop_ms - 1, has_more=True)
    last = found[0] if found else opens.last()
    return PageBounds(None if last is None else epoch_ms(last), len(found) > 1)


def _end_of_look(series: StoredSeries, after_ms: int, end_ms: int) -> int | None:
    """When the first candle opened that is not looked at for this page; None if all are."""
    opens = series._replace(withheld=()).opened(after_ms, end_ms).values_list("opened_at", flat=True)
    stop = next(iter(opens[MOST_LOOKED_AT : MOST_LOOKED_AT + 1]), None)
    return None if stop is None else epoch_ms(stop)


def read_parts(
    series: StoredSeries, after_ms: int, last_ms: int, *, has_basis: bool = False
) -> Iterator[CandlePart]:
    """The candles that opened after one moment and not after another. Nothing is held between two parts."""
    candles = series.opened(after_ms, last_ms + 1).annotate(**ON_THE_WIRE)
    query = PartsQuery(candles.values_list(*ON_THE_WIRE, *(MADE_OF if has_basis else ()))[:PART])
    # Where there are none, what was to come is past its retention by now.
    while after_ms < last_ms and (rows := query.rows()):
        part = _on_the_wire(rows, series.digits)
        before_ms, after_ms = after_ms, epoch_ms(read_iso(part[-1].time))
        query.go_on(before_ms, after_ms)
        yield CandlePart(part, is_last=after_ms == last_ms)


class PartsQuery(CompiledQuery):
    """Compiled once for all parts of a page, which takes a fifth of the time of reading one."""

    def go_on(self, before_ms: int, after_ms: int) -> None:
        adapt = connection.ops.adapt_datetimefield_value
        before, after = adapt(moment(before_ms)), adapt(moment(after_ms))
        self._params = tuple(after if param == before else param for param in self._params)


def _on_the_wire(rows: list[tuple[Any, ...]], digits: int) -> list[OhlcvCandle]:
    """Column by column, and each price once, which takes half as long as row by row."""
    opens, *values = zip(*rows, strict=True)
    times = [f"{at[:10]}T{at[11:19]}Z" for at in opens]
    rounded = {price: round(price, digits) for price in set().union(*values[:4])}
    prices = [map(rounded.__getitem__, column) for column in values[:4]]
    volumes = map(round, values[4], repeat(VOLUME_DECIMALS))
    made_of = [map(basis_of, *values[5:8]), values[8]] if values[5:] else []
    return [*map(OhlcvCandle, times, *prices, volumes, *made_of)]


def read_bases(series: StoredSeries, first_ms: int, last_ms: int) -> dict[int, tuple[str, bool]]:
    """When each of these candles opened, what it is made of, and whether it is partial."""
    rows = series.opened(first_ms - 1, last_ms + 1).values_list("opened_at", *MADE_OF)
    return {epoch_ms(at): (basis_of(*made_of), partial) for at, *made_of, partial in rows}


def basis_of(basis: str, source: str, by_venue: bool) -> str:
    """Of what contains several, the first."""
    if basis in ("trades", "import"):
        return basis
    if "import" in source.split("+"):
        return "import"
    return "venue" if by_venue else "ticks"
