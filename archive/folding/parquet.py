"""Rows of ticks and candles, and their Parquet files. pyarrow is an extra, so it is imported only when
needed."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Exists, OuterRef

from archive.manifests import NumberGap
from core.plain_json import encode
from core.times import epoch_ms
from instruments.models import Instrument
from market.models import Candle
from market.prices import TIMEFRAMES, EmptyMinute, HistoryMinute, TickAccepted

if TYPE_CHECKING:
    import pyarrow as pa


# The ticks of one symbol and day on their way out of the journal, in columns.
DAY_MS = TIMEFRAMES["1d"]


class Names:
    """Texts that come again and again, by a small number."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known))


class TickRows:
    """Rows that are waiting to be written."""

    def __init__(self, epochs: Names, sources: Names, feeds: Names) -> None:
        self._epochs, self._sources, self._feeds = epochs, sources, feeds
        self.clear()

    def clear(self) -> None:
        self.seq, self.time_ms = array("q"), array("q")
        self.bid, self.ask, self.volume = array("d"), array("d"), array("d")
        self.epoch, self.source, self.side = array("i"), array("i"), array("b")
        self.accepted_ms, self.unsettled_ms = array("q"), array("q")
        self.feed, self.settled = array("i"), array("b")

    def __len__(self) -> int:
        return len(self.seq)

    def add(self, epoch: str, tick: TickAccepted) -> None:
        self.seq.append(tick.seq)
        self.time_ms.append(tick.time_ms)
        self.bid.append(tick.bid)
        self.ask.append(tick.ask)
        self.volume.append(tick.volume)
        self.side.append(tick.side)
        self.epoch.append(self._epochs.number(epoch))
        self.source.append(self._sources.number(tick.source))
        self.accepted_ms.append(tick.accepted_ms)
        self.unsettled_ms.append(tick.unsettled_ms)
        self.feed.append(self._feeds.number(tick.feed))
        self.settled.append(tick.settled)


class Carried(NamedTuple):
    """The last tick of a symbol before the day."""

    seq: int
    time_ms: int
    bid: float
    ask: float


class SymbolDay:
    """What of one symbol belongs into the file of one day. Its numbers have no holes, or it says where."""

    def __init__(self, symbol: str, start_ms: int, end_ms: int, known: Carried | None) -> None:
        """`known` is the last tick that is in files: of a day before, or perhaps of this one."""
        self.symbol, self._start_ms, self._end_ms = symbol, start_ms, end_ms
        self.last = known
        self.carried = known if known is not None and known.time_ms < start_ms else None
        self.epochs, self.sources, self.feeds = Names(), Names(), Names()
        self.rows = TickRows(self.epochs, self.sources, self.feeds)
        self.events: list[dict[str, Any]] = []
        """What else made minutes, each after the tick that came before it."""
        self.gaps: list[NumberGap] = []
        self.number = 0
        """Of ticks."""
        self.is_real = True
        """Otherwise the numbers are given to ticks that are not kept."""
        self.earlier_ms: set[int] = set()
        """When days before this one began of which something came after it."""
        self._seq = None if known is None else known.seq
        """The last number that is accounted for; None before anything is known."""
        self._seq_of_day = self._seq
        self._minutes: set[object] = set()
        self._is_over = False

    @property
    def carries(self) -> Carried | None:
        """The state from which the next day continues."""
        if self.last is None or self._seq_of_day is None or not self.is_real:
            return None
        return self.last._replace(seq=self._seq_of_day)

    def begins(self, seq: int, at_ms: int) -> None:
        """An engine begins, and says how far the numbers had come."""
        if self._seq is None and seq and at_ms > self._start_ms:
            # Their days are unknown.
            self.gaps.append(NumberGap(self._start_ms, min(at_ms, self._end_ms), None))
        elif self._seq is not None and seq > self._seq and self.is_real:
            self._miss(self._seq, seq, at_ms)
        # Or the database is an older one, and its numbers are given again.
        self._note(seq, at_ms)

    def begins_series(self, seq: int, at_ms: int, *, simulated: bool) -> None:
        """What was numbered until now was of the other kind."""
        if self._seq is not None and seq < self._seq:
            # Written twice.
            return
        if not self.number and self.carried is None:
            self.gaps.clear()
        self.is_real = not simulated
        self._note(seq, at_ms)

    def take(self, epoch: str, tick: TickAccepted) -> None:
        if self._seq is not None and tick.seq <= self._seq:
            # Written twice.
            return
        if self._seq is not None and tick.seq > self._seq + 1:
            self._miss(self._seq, tick.seq - 1, tick.time_ms)
        self._note(tick.seq, tick.time_ms)
        if tick.time_ms >= self._end_ms:
            self._is_over = True
            return
        self.last = Carried(tick.seq, tick.time_ms, tick.bid, tick.ask)
        if tick.time_ms < self._start_ms:
            self.earlier_ms.add(tick.time_ms - tick.time_ms % DAY_MS)
        else:
            self.rows.add(epoch, tick)
            self.number += 1

    def make_minute(self, minute: EmptyMinute | HistoryMinute) -> None:
        opened_ms = minute.minute_ms if isinstance(minute, EmptyMinute) else minute.minute.opened_ms
        if opened_ms < self._start_ms:
            self.earlier_ms.add(opened_ms - opened_ms % DAY_MS)
            return
        values = minute_values(minute)
        # Of one minute several parts may have been missed, and then the whole may come.
        once = opened_ms if values["kind"] in ("flat", "history") else tuple(values.values())
        if opened_ms < self._end_ms and once not in self._minutes:
            self._minutes.add(once)
            self.events.append({"after_seq": self._seq or 0, **values})
            self.sources.number(self.events[-1]["source"])

    def end(self, seq: int) -> None:
        """The numbers have reached `seq` by now."""
        if self._seq is not None and seq > self._seq and self.is_real:
            self._miss(self._seq, seq, self._end_ms)

    def _note(self, seq: int, at_ms: int) -> None:
        self._seq = seq
        if at_ms < self._end_ms and not self._is_over:
            self._seq_of_day = seq

    def _miss(self, known: int, upto: int, at_ms: int) -> None:
        """Ticks up to this number came before this time, and are not in the journal."""
        known_ms = self.last.time_ms if self.last is not None else self._start_ms
        if not self._is_over and at_ms > self._start_ms:
            start_ms, end_ms = max(known_ms, self._start_ms), min(at_ms, self._end_ms)
            if start_ms <= end_ms:
                self.gaps.append(NumberGap(start_ms, end_ms, upto - known))


def minute_values(record: EmptyMinute | HistoryMinute) -> dict[str, Any]:
    if isinstance(record, EmptyMinute):
        return {"minute": record.minute_ms, "kind": "flat", "source": record.source}
    bar = record.minute
    prices = {name: getattr(bar, name) for name in ("open", "high", "low", "close", "volume")}
    asks = {"ask_high": bar.ask_high, "ask_low": bar.ask_low}
    kind = "part" if record.is_part else "whole" if record.replaces else "history"
    minute = {"minute": bar.opened_ms, "kind": kind, "source": bar.source, "basis": record.basis}
    return minute | prices | asks


# The stored minutes of a day as a table.
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


METADATA = b"tickwire"
"""The key under which a file says in JSON what its columns do not."""
BLOCK = 1 << 20


def tick_schema() -> pa.Schema:
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    prices = [(column, pa.float64()) for column in ("bid", "ask", "volume")]
    time = ("time", pa.timestamp("ms", tz="UTC"))
    first = [("seq", pa.int64()), ("epoch", name), time]
    # Signals are judged by these; older files do not have them.
    judged = [
        ("accepted_ms", pa.int64()),
        ("feed", name),
        ("settled", pa.bool_()),
        ("unsettled_ms", pa.int64()),
    ]
    return pa.schema([*first, *prices, ("side", pa.int8()), ("source", name), *judged])


def candle_schema() -> pa.Schema:
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    columns = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")
    prices = [(column, pa.float64()) for column in columns]
    return pa.schema([("time", pa.timestamp("ms", tz="UTC")), *prices, ("basis", name), ("source", name)])


class TickWriter:
    """One file, which is written group by group."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self._schema = tick_schema()
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, day: SymbolDay, rows: TickRows) -> None:
        import pyarrow as pa

        def named(numbers: Sequence[int], names: dict[str, int]) -> pa.Array:
            return pa.DictionaryArray.from_arrays(
                pa.array(numbers, pa.int32()), pa.array(list(names), pa.string())
            )

        columns = [
            pa.array(rows.seq, pa.int64()),
            named(rows.epoch, day.epochs.known),
            pa.array(rows.time_ms, pa.int64()).cast(pa.timestamp("ms", tz="UTC")),
            *(pa.array(values, pa.float64()) for values in (rows.bid, rows.ask, rows.volume)),
            pa.array(rows.side, pa.int8()),
            named(rows.source, day.sources.known),
            pa.array([accepted_ms or None for accepted_ms in rows.accepted_ms], pa.int64()),
            named(rows.feed, day.feeds.known),
            pa.array(map(bool, rows.settled), pa.bool_()),
            pa.array(rows.unsettled_ms, pa.int64()),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self, metadata: dict[str, Any]) -> None:
        self._writer.add_key_value_metadata({METADATA: encode(metadata)})
        self._writer.close()


def write_table(path: Path, table: pa.Table, metadata: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table.replace_schema_metadata({METADATA: encode(metadata)}), path, compression="zstd")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_blocks(path: Path, blocks: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        for block in blocks:
            file.write(block)
