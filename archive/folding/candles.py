"""The stored minutes of a day as a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Exists, OuterRef

from core.times import epoch_ms
from instruments.models import Instrument
from market.models import Candle

if TYPE_CHECKING:
    import pyarrow as pa

PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")


class ArchivedInstrument(NamedTuple):
    id: int
    symbol: str
    digits: int


def span_of(day: date) -> tuple[datetime, datetime]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def with_minutes(day: date) -> list[ArchivedInstrument]:
    """Those of which real minutes are stored that day."""
    start, end = span_of(day)
    own = Candle.objects.filter(
        instrument=OuterRef("pk"), simulated=False, timeframe="1m", opened_at__gte=start, opened_at__lt=end
    )
    found = Instrument.objects.filter(Exists(own)).order_by("symbol")
    return [ArchivedInstrument(*values) for values in found.values_list("pk", "symbol", "digits")]


def stored_minutes(instrument_id: int, day: date) -> list[tuple[object, ...]]:
    """time_ms, the prices as floats, basis and source of each, in order."""
    start, end = span_of(day)
    rows = Candle.objects.filter(
        instrument=instrument_id, simulated=False, timeframe="1m", opened_at__gte=start, opened_at__lt=end
    )
    return [
        (epoch_ms(at), *[None if price is None else float(price) for price in prices], basis, source)
        for at, *prices, basis, source in rows.order_by("opened_at").values_list(
            "opened_at", *PRICES, "basis", "source"
        )
    ]


def candle_table(instrument: ArchivedInstrument, day: date) -> tuple[pa.Table, set[str]]:
    """And the sources that it is of."""
    import pyarrow as pa

    rows = stored_minutes(instrument.id, day)
    columns = list(zip(*rows, strict=True)) or [()] * (len(PRICES) + 3)
    times, *prices, bases, sources = columns
    name = pa.dictionary(pa.int32(), pa.string())
    arrays = [
        pa.array(times, pa.int64()).cast(pa.timestamp("ms", tz="UTC")),
        *(pa.array(values, pa.float64()) for values in prices),
        pa.array(bases, pa.string()).cast(name),
        pa.array(sources, pa.string()).cast(name),
    ]
    table = pa.Table.from_arrays(arrays, names=["time", *PRICES, "basis", "source"])
    return table, {each for source in sources for each in str(source).split("+") if each}
