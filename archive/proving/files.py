"""A day rebuilt from its files: its ticks, its minutes, and what the candles should be."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from archive.folding.parquet import METADATA
from archive.manifests import ManifestFile
from archive.stores import ArchiveStore
from core.times import MINUTE_MS, iso_s
from market.prices import CandleBuilder, PriceBar

if TYPE_CHECKING:
    import pyarrow.parquet as pq


# The minutes of a day out of its ticks alone, as the engine makes them.
PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")


class ArchivedTick(NamedTuple):
    seq: int
    epoch: str
    time_ms: int
    bid: float
    ask: float
    volume: float
    source: str
    accepted_ms: int | None = None
    """None if unknown, like all that follow."""
    feed: str | None = None
    settled: bool | None = None
    unsettled_ms: int | None = None


class TickFacts(NamedTuple):
    """What a file of ticks says besides."""

    candle_price: str
    digits: int
    before: dict[str, Any] | None
    """The last tick before the day; None if unknown."""
    minutes: Sequence[dict[str, Any]]
    """Minutes that no tick made, each after the tick that came before it."""


class RebuiltMinute(NamedTuple):
    bar: PriceBar
    basis: str


class Rebuilding:
    """Takes what the engine took, in the same order."""

    def __init__(self, facts: TickFacts) -> None:
        self._facts, self._builder = facts, CandleBuilder()
        self._refilled_ms, self._is_refilled = -1, False
        self._healed: set[int] = set()
        if facts.before is not None:
            price = self._price(facts.before["bid"], facts.before["ask"])
            self._builder.resume_forming(None, price, facts.before["ask"])

    def run(self, ticks: Iterable[ArchivedTick], end_ms: int) -> Iterator[RebuiltMinute]:
        minutes = iter(self._facts.minutes)
        coming = next(minutes, None)
        for tick in ticks:
            while coming is not None and coming["after_seq"] < tick.seq:
                yield from self._minute(coming)
                coming = next(minutes, None)
            yield from self._tick(tick)
        while coming is not None:
            yield from self._minute(coming)
            coming = next(minutes, None)
        yield from self._kept(self._builder.close_until(end_ms), None)

    def _tick(self, tick: ArchivedTick) -> Iterator[RebuiltMinute]:
        self._price_by(tick.source)
        price = self._price(tick.bid, tick.ask)
        yield from self._kept(self._builder.add(tick.time_ms, price, tick.ask, tick.volume), None)

    def _minute(self, minute: dict[str, Any]) -> Iterator[RebuiltMinute]:
        opened_ms = minute["minute"]
        if minute["kind"] == "flat":
            self._price_by(minute["source"])
            yield from self._kept(self._builder.close_until(opened_ms), minute)
            yield from self._kept(self._builder.fill(opened_ms), minute)
        else:
            prices = {name: minute[name] for name in PRICES}
            bar = PriceBar(opened_ms, **prices, source=minute["source"])
            if minute["kind"] == "part":
                yield from self._kept(self._builder.add_part(bar), minute)
                self._healed.add(opened_ms)
            else:
                replaces = minute["kind"] == "whole"
                yield from self._kept(self._builder.refill(bar, replaces=replaces), minute)

    def _kept(
        self, closed: Iterable[tuple[str, PriceBar]], minute: dict[str, Any] | None
    ) -> Iterator[RebuiltMinute]:
        basis = self._facts.candle_price
        if minute is not None and minute.get("basis", "trades") != "trades":
            basis = minute["basis"]
        for timeframe, bar in closed:
            if timeframe == "1m":
                self._note(bar.opened_ms, minute)
                yield RebuiltMinute(bar, "trades" if bar.opened_ms <= self._refilled_ms else basis)

    def _note(self, opened_ms: int, minute: dict[str, Any] | None) -> None:
        """A flat minute is of trade prices where the one is that it repeats."""
        is_own = minute is not None and minute["minute"] == opened_ms
        if is_own and minute is not None and minute["kind"] in ("history", "whole"):
            self._is_refilled = minute["basis"] == "trades"
        elif not is_own:
            self._is_refilled = False
        if self._is_refilled or opened_ms in self._healed:
            self._refilled_ms = opened_ms

    def _price(self, bid: float, ask: float) -> float:
        return round((bid + ask) / 2, self._facts.digits) if self._facts.candle_price == "mid" else bid

    def _price_by(self, source: str) -> None:
        if self._builder.source != source:
            self._builder.price_by(source)


def rebuilt(ticks: Iterable[ArchivedTick], facts: TickFacts, end_ms: int) -> dict[int, RebuiltMinute]:
    return {each.bar.opened_ms: each for each in Rebuilding(facts).run(ticks, end_ms)}


BATCH = 50_000
COLUMNS = {"time_ms": "time"}


class NotAsListed(Exception):
    """A file is not what the manifest says; the reason completes a sentence about it."""


class ArchivedMinute(NamedTuple):
    """A row of a file of candles, or of the table."""

    open: float
    high: float
    low: float
    close: float
    volume: float
    ask_high: float | None
    ask_low: float | None
    basis: str
    source: str


class CheckedFile:
    """One whose bytes are those of its digest."""

    def __init__(self, store: ArchiveStore, file: ManifestFile) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = store.read(file.path)
        if len(data) != file.bytes:
            raise NotAsListed(f"has {len(data)} bytes, and the manifest says {file.bytes}")
        if (found := hashlib.sha256(data).hexdigest()) != file.sha256:
            raise NotAsListed(f"was altered: its SHA-256 is {found}, and the manifest says {file.sha256}")
        try:
            self.parquet: pq.ParquetFile = pq.ParquetFile(BytesIO(data))
            self.about: dict[str, Any] = msgspec.json.decode(self.parquet.metadata.metadata[METADATA])
        except (pa.ArrowException, KeyError, TypeError, msgspec.MsgspecError) as error:
            raise NotAsListed(f"is not one of the archive's files ({error})") from None
        if (rows := self.parquet.metadata.num_rows) != file.rows:
            raise NotAsListed(f"has {rows} rows, and the manifest says {file.rows}")

    @property
    def facts(self) -> TickFacts:
        prices = self.about["candle_price"] or ["bid"]
        return TickFacts(prices[-1], self.about["digits"], self.about["before"], self.about["minutes"])

    @property
    def says_when_accepted(self) -> bool:
        """Older files do not, or not for each tick."""
        if "accepted_ms" not in self.parquet.schema_arrow.names:
            return False
        return bool(self.parquet.read(["accepted_ms"])["accepted_ms"].null_count == 0)

    def ticks(self, accepted: tuple[int, int] | None = None) -> Iterator[ArchivedTick]:
        """All, or those that were accepted from one time up to another."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = [COLUMNS.get(name, name) for name in ArchivedTick._fields]
        columns = [name for name in columns if name in self.parquet.schema_arrow.names]
        for batch in self.parquet.iter_batches(BATCH, columns=columns):
            if accepted is not None:
                at_ms = batch["accepted_ms"]
                within = pc.greater_equal(at_ms, accepted[0]), pc.less_equal(at_ms, accepted[1])
                batch = batch.filter(pc.and_(*within))
            values = [
                (batch[name].cast(pa.int64()) if name == "time" else batch[name]).to_pylist()
                for name in columns
            ]
            yield from itertools.starmap(ArchivedTick, zip(*values, strict=True))

    def minutes(self) -> dict[int, ArchivedMinute]:
        import pyarrow as pa

        table = self.parquet.read()
        times = table["time"].cast(pa.int64()).to_pylist()
        columns = [table[name].to_pylist() for name in (*PRICES, "basis", "source")]
        return dict(zip(times, map(ArchivedMinute._make, zip(*columns, strict=True)), strict=True))


def symbol_and_day(file: ManifestFile, day: date) -> str:
    return f"{file.symbol} of {day}"


# The minutes of a day, from three places: its ticks, its file and the database.
IMPORTED = "import"
MOST_TOLD = 5
FIELDS = ArchivedMinute._fields


class MinuteFindings:
    """Of one symbol and day."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.equal = self.imported = self.in_holes = self.unknown = self.filled_since = 0

    def add(self, opened_ms: int, says: str) -> None:
        self.faults.append(f"{iso_s(opened_ms)}: {says}")


def compare_rebuilt(
    made: Mapping[int, RebuiltMinute],
    stored: Mapping[int, ArchivedMinute],
    holes: Sequence[tuple[int, int]],
    *,
    knows_before: bool,
) -> MinuteFindings:
    """The minutes that the ticks make with those that are stored: none more, none less, every field."""
    found, after_import, first_ms = MinuteFindings(), False, min(made, default=0)
    for opened_ms in sorted(made.keys() | stored.keys()):
        own, kept = made.get(opened_ms), stored.get(opened_ms)
        # A flat minute repeats what stood before it, though that came out of a file.
        after_import = is_imported(kept) or (after_import and kept is not None and not kept.volume)
        if after_import:
            found.imported += 1
        elif own is not None and kept is not None and not (differing := differences(own, kept)):
            found.equal += 1
        elif any(start < opened_ms + MINUTE_MS and end >= opened_ms for start, end in holes):
            found.in_holes += 1
        elif own is None and not knows_before and opened_ms < first_ms:
            found.unknown += 1
        elif own is None:
            found.add(opened_ms, "it is stored, and no tick of the archive makes it")
        elif kept is None:
            found.add(opened_ms, "the ticks make it, and it is not stored")
        else:
            found.add(opened_ms, f"the ticks make another one: {'; '.join(differing)}")
    return found


def is_imported(minute: ArchivedMinute | None) -> bool:
    return minute is not None and IMPORTED in minute.source.split("+")


def differences(own: RebuiltMinute, kept: ArchivedMinute) -> list[str]:
    prices = {name: getattr(own.bar, name) for name in PRICES}
    made = ArchivedMinute(**prices, basis=own.basis, source=own.bar.source)
    return _differing(made, kept)


def _differing(one: ArchivedMinute, other: ArchivedMinute) -> list[str]:
    return [
        f"{name} {_shown(first)} instead of {_shown(second)}"
        for name, first, second in zip(FIELDS, one, other, strict=True)
        if _plain(first) != _plain(second)
    ]


def _plain(value: float | str | None) -> float | str | None:
    return round(value, 8) if isinstance(value, float) else value


def _shown(value: float | str | None) -> str:
    return "nothing" if value is None else str(value)


def compare_database(
    in_file: Mapping[int, ArchivedMinute], in_database: Mapping[int, ArchivedMinute]
) -> MinuteFindings:
    """What is stored now may have been filled since, or imported; nothing else may differ."""
    found = MinuteFindings()
    for opened_ms in sorted(in_file.keys() | in_database.keys()):
        archived, now = in_file.get(opened_ms), in_database.get(opened_ms)
        if is_imported(now) and archived != now:
            found.imported += 1
        elif archived is None:
            found.filled_since += 1
        elif now is None:
            found.add(opened_ms, "it is in the archive, and no longer in the database")
        elif differing := _differing(archived, now):
            found.add(opened_ms, f"the archive has {'; '.join(differing)}")
        else:
            found.equal += 1
    return found


def first_of(faults: Iterable[str]) -> str:
    every = list(faults)
    more = f" … and {len(every) - MOST_TOLD} more" if len(every) > MOST_TOLD else ""
    return " · ".join(every[:MOST_TOLD]) + more
