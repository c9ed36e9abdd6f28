"""The files of one day: read from its journal, merged with what came late, made in a folder of their own, and
handed to the store when they are whole."""

from __future__ import annotations

import hashlib
import os
import shutil
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from archive.journal import HeardRecords, Opened, TickSegment
from archive.manifests import ArchiveManifest, ManifestFile, NumberGap, candles_path, joined, ticks_path
from archive.stores import ArchiveStore, NotStored, sync_folder
from core.times import epoch_ms, read_iso
from instruments.catalogue import may_be_passed_on
from market.prices import TIMEFRAMES, EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

from .parquet import (
    METADATA,
    Carried,
    SymbolDay,
    TickWriter,
    candle_schema,
    candle_table,
    digest,
    write_table,
)

if TYPE_CHECKING:
    from .parquet import ArchivedInstrument


# Two files of the same symbol and day, of which each has a part.
class Merged(NamedTuple):
    path: Path
    rows: int
    gaps: list[NumberGap]
    """Those that neither fills."""
    sources: list[str]


def merged(one: Path, other: Path, to: Path, gaps: Sequence[NumberGap]) -> Merged:
    """The file that has the ticks of both, each once: the one of them to which the other adds nothing, first
    of all `other`, which has been served. `gaps` are those of either."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = [pq.ParquetFile(path) for path in (other, one)]
    about = [msgspec.json.decode(file.metadata.metadata[METADATA]) for file in opened]
    tables = [file.read().replace_schema_metadata(None) for file in opened]
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    order = pc.sort_indices(whole, sort_keys=[("time", "ascending"), ("seq", "ascending")])
    whole = whole.take(order)
    seqs = whole["seq"].to_pylist()
    firsts = [place for place, seq in enumerate(seqs) if place == 0 or seq != seqs[place - 1]]
    whole = whole.take(pa.array(firsts))
    both = _about_both(*about)
    if len(firsts) == opened[0].metadata.num_rows and both == about[0]:
        to = other
    elif len(firsts) == opened[1].metadata.num_rows and both == about[1]:
        to = one
    else:
        write_table(to, whole, both)
    times, seqs = whole["time"].cast(pa.int64()).to_pylist(), [seqs[place] for place in firsts]
    left = [gap for gap in gaps if gap.is_lost or not is_filled(gap, times, seqs)]
    sources = {*whole["source"].to_pylist(), *(minute["source"] for minute in both["minutes"])}
    return Merged(to, len(firsts), left, sorted(sources))


def is_filled(gap: NumberGap, times: Sequence[int], seqs: Sequence[int]) -> bool:
    """Whether the numbers from before the gap to after it have no holes. At an end of the day, without a
    number on the other side, there must be as many as it lacks."""
    first, end = bisect_left(times, gap.start_ms), bisect_right(times, gap.end_ms)
    has_sides = first > 0 or (first < end and times[first] == gap.start_ms)
    has_sides &= end < len(times) or (first < end and times[end - 1] == gap.end_ms)
    within = seqs[max(0, first - 1) : end + 1]
    if any(later != seq + 1 for seq, later in pairwise(within)):
        return False
    inside = sum(gap.start_ms < time_ms < gap.end_ms for time_ms in times[first:end])
    return has_sides or inside >= (1 if gap.missing is None else gap.missing)


def _about_both(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    # One that is read again may not know after which tick of the day it came.
    minutes = {each["minute"]: each for each in (*now["minutes"], *before["minutes"])}
    prices = dict.fromkeys([*now["candle_price"], *before["candle_price"]])
    first = now["before"] or before["before"]
    ordered = [minutes[opened_ms] for opened_ms in sorted(minutes)]
    return {**now, "minutes": ordered, "candle_price": list(prices), "before": first}


# Reads the journal for one day: what was given again in a later numbering, or written twice, counts once.
Bounds = dict[str, tuple[int, int]] | None
"""By symbol the last number and the end of the last minute that count; None: all do."""


def day_start_ms(day: date) -> int:
    return epoch_ms(datetime(day.year, day.month, day.day, tzinfo=UTC))


def bounds_of(heads: list[Opened | None]) -> list[Bounds]:
    """The part of each segment that still counts, from where the engines after it began."""
    bounds: list[Bounds] = []
    known: Bounds = None
    for head in reversed(heads):
        bounds.append(known)
        if head is not None and head.standings is not None:
            known = {
                symbol: standing if known is None else _least(standing, known[symbol])
                for symbol, standing in head.standings.items()
                if known is None or symbol in known
            }
    return bounds[::-1]


def _least(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), min(one[1], other[1])


class DayReader:
    def __init__(self, day: date, known: dict[str, Carried], on_rows: Callable[[SymbolDay], None]) -> None:
        """`on_rows` is called with a symbol that has rows to write."""
        self.start_ms = day_start_ms(day)
        self.end_ms = self.start_ms + TIMEFRAMES["1d"]
        self.symbols: dict[str, SymbolDay] = {}
        self.candle_prices: list[str] = []
        self.damages: defaultdict[TickSegment, list[tuple[int, int]]] = defaultdict(list)
        """At which byte of a segment, and how many bytes cannot be read."""
        self._known, self._on_rows = known, on_rows
        for symbol in known:
            self._symbol(symbol)

    def read(self, segments: list[TickSegment]) -> None:
        heads = [segment.head() for segment in segments]
        for segment, head, bounds in zip(segments, heads, bounds_of(heads), strict=True):
            if head is not None:
                self._begin(head)
                for epoch, record in _records(segment, bounds, self.damages):
                    self._take(epoch, record)
            elif next(segment.frames(), None) is not None:
                # Without its head, the segment does not show which frames count.
                self.damages[segment].append((0, segment.path.stat().st_size))

    def _begin(self, head: Opened) -> None:
        if head.candle_price not in self.candle_prices and head.at_ms < self.end_ms:
            self.candle_prices.append(head.candle_price)
        for symbol, (seq, _) in (head.standings or {}).items():
            if head.at_ms < self.end_ms or symbol in self.symbols:
                self._symbol(symbol).begins(seq, head.at_ms)

    def _take(self, epoch: str, record: TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan) -> None:
        own = self._symbol(record.symbol)
        if isinstance(record, TickAccepted):
            own.take(epoch, record)
            self._on_rows(own)
        elif isinstance(record, SeriesBegan):
            own.begins_series(record.seq, record.at_ms, simulated=record.simulated)
        else:
            own.make_minute(record)

    def earlier_days(self) -> list[date]:
        """Those before it of which something came after their files were made."""
        began = {start_ms for own in self.symbols.values() for start_ms in own.earlier_ms}
        return sorted(datetime.fromtimestamp(start_ms // 1000, UTC).date() for start_ms in began)

    def _symbol(self, symbol: str) -> SymbolDay:
        own = self.symbols.get(symbol)
        if own is None:
            known = self._known.get(symbol)
            own = SymbolDay(symbol, self.start_ms, self.end_ms, known)
            self.symbols[symbol] = own
        return own


def _records(
    segment: TickSegment, bounds: Bounds, damages: defaultdict[TickSegment, list[tuple[int, int]]]
) -> Iterator[tuple[str, TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan]]:
    for frame in segment.frames(lambda offset, size: damages[segment].append((offset, size))):
        if isinstance(frame, HeardRecords):
            for record in frame.records:
                if bounds is None or _counts(record, bounds.get(record.symbol, (0, 0))):
                    yield frame.epoch, record


def _counts(record: TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan, bound: tuple[int, int]) -> bool:
    seq, closed_until_ms = bound
    if isinstance(record, TickAccepted | SeriesBegan):
        return record.seq <= seq
    opened_ms = record.minute_ms if isinstance(record, EmptyMinute) else record.minute.opened_ms
    return opened_ms < closed_until_ms


# What a run of the nightly work tells the next one, beside the journal.
class HandedOver:
    """Digests of files that took the place of others and may be in no manifest yet: a run that was stopped
    between the two finds such a file, and it is not damaged."""

    def __init__(self, note: Path) -> None:
        self._note = note

    def add(self, sha256: str) -> None:
        write_whole(self._note, msgspec.json.encode([*self._known(), sha256]))

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._known()

    def clear(self) -> None:
        self._note.unlink(missing_ok=True)

    def _known(self) -> list[str]:
        try:
            return msgspec.json.decode(self._note.read_bytes(), type=list[str])
        except FileNotFoundError:
            return []


def write_whole(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


VERSION = 1
# Rows of all symbols together that wait in memory, and as many as a group of a file has at least.
MOST_ROWS, LEAST_GROUP = 1_000_000, 20_000
LOST_TICKS = "the ticks that are in it"


class NotUsable(Exception):
    """What is stored of a day is damaged, so nothing can be put with it."""

    def __init__(self, path: str, why: str, cost: str) -> None:
        """`cost` is what is gone if it is removed."""
        super().__init__(
            f"{path} is stored already and cannot be used: {why.rstrip('.')}. Restore it from a copy. "
            f"Without a copy, remove it, which costs {cost}."
        )


class DayFiles:
    def __init__(
        self,
        day: date,
        store: ArchiveStore,
        folder: Path,
        withheld: Collection[str],
        before: ArchiveManifest | None,
        handed: HandedOver,
    ) -> None:
        """`before` is what was known until now: another machine's part, or what came until then."""
        self.day, self.store, self.folder, self._withheld = day, store, folder, withheld
        self.before, self._handed = before, handed
        self.files: list[ManifestFile] = []
        self.gaps: dict[str, list[NumberGap]] = {}
        self._writers: dict[str, TickWriter] = {}
        self._waiting = 0
        self.reader: DayReader

    def begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def read(self, segments: list[TickSegment], known: dict[str, Carried]) -> None:
        self.reader = DayReader(self.day, known, self._note_row)
        self.reader.read(segments)

    def put_ticks(self, known: dict[str, tuple[int, int]], *, is_late: bool) -> None:
        """`known` are the instruments' last numbers in the database, and their digits."""
        for symbol, own in sorted(self.reader.symbols.items()):
            last, digits = known.get(symbol, (0, 0))
            if is_late:
                # What is known of the whole day stands in the manifest.
                own.gaps = [gap for gap in own.gaps if gap.missing is not None]
            else:
                own.end(last)
            if own.number or own.events:
                self._put_ticks(own, digits)
            elif own.gaps and last and not is_late:
                self.gaps[symbol] = joined([*own.gaps, *self._known_gaps(own)])

    def put_candles(self, instruments: list[ArchivedInstrument]) -> None:
        for instrument in instruments:
            table, sources = candle_table(instrument, self.day)
            if not table.num_rows or not may_be_passed_on(sources, self._withheld):
                continue
            local = self.folder / "candles.parquet"
            about = self._about(instrument.symbol, instrument.digits) | {"timeframe": "1m"}
            write_table(local, table.cast(candle_schema()), about)
            path = candles_path(instrument.symbol, self.day)
            self._put(path, "candles", instrument.symbol, local, table.num_rows, sources)

    @property
    def has_ticks(self) -> bool:
        return any(own.number for own in self.reader.symbols.values())

    def _note_row(self, own: SymbolDay) -> None:
        self._waiting += 1
        if self._waiting > MOST_ROWS:
            for each in self.reader.symbols.values():
                if len(each.rows) >= LEAST_GROUP:
                    self._write(each)
            self._waiting = sum(len(each.rows) for each in self.reader.symbols.values())

    def _write(self, own: SymbolDay) -> None:
        writer = self._writers.get(own.symbol)
        if writer is None:
            writer = self._writers[own.symbol] = TickWriter(self.folder / f"{own.symbol}.parquet")
        writer.write(own, own.rows)
        own.rows.clear()

    def _put_ticks(self, own: SymbolDay, digits: int) -> None:
        self._write(own)
        writer, sources = self._writers.pop(own.symbol), sorted(own.sources.known)
        about = self._about(own.symbol, digits) | {
            "candle_price": self.reader.candle_prices,
            "before": own.carried._asdict() if own.carried is not None else None,
            "minutes": own.events,
        }
        writer.close(about)
        gaps, rows = [*own.gaps, *self._known_gaps(own)], own.number
        path, local = ticks_path(own.symbol, self.day), writer.path
        if (stored := self._stored(path)) is not None:
            other = self.folder / "other.parquet"
            other.write_bytes(stored)
            local, rows, gaps, sources = self._merged(path, local, other, gaps)
        self.gaps[own.symbol] = joined(gaps)
        if may_be_passed_on(sources, self._withheld):
            self._put(path, "ticks", own.symbol, local, rows, sources)
        local.unlink()

    def _merged(self, path: str, local: Path, other: Path, gaps: list[NumberGap]) -> Merged:
        import pyarrow as pa

        try:
            return merged(local, other, self.folder / "merged.parquet", gaps)
        except (pa.ArrowException, KeyError, TypeError, msgspec.MsgspecError) as error:
            raise NotUsable(path, str(error), LOST_TICKS) from None

    def _stored(self, path: str) -> bytes | None:
        """Only what the manifest says: with a new digest, damage would pass for data."""
        try:
            data = self.store.read(path)
        except NotStored:
            return None
        found, listed = hashlib.sha256(data).hexdigest(), self._listed(path)
        if listed is not None and found != listed.sha256 and found not in self._handed:
            why = f"its SHA-256 is {found}, and the manifest says {listed.sha256}"
            raise NotUsable(path, why, f"{LOST_TICKS}, which the manifest then names as a hole")
        return data

    def _listed(self, path: str) -> ManifestFile | None:
        files = [] if self.before is None else self.before.files
        return next((file for file in files if file.path == path), None)

    def lost(self) -> list[ManifestFile]:
        """Those of its files that are lost, if rows are to be added to them."""
        symbols = [own.symbol for own in self.reader.symbols.values() if own.number or own.events]
        listed = [self._listed(ticks_path(symbol, self.day)) for symbol in symbols]
        return [file for file in listed if file is not None and not self._is_stored(file.path)]

    def _is_stored(self, path: str) -> bool:
        try:
            self.store.size(path)
        except NotStored:
            return False
        return True

    def _known_gaps(self, own: SymbolDay) -> list[NumberGap]:
        holes = [] if self.before is None else self.before.holes
        known = [
            NumberGap(epoch_ms(read_iso(hole.start)), epoch_ms(read_iso(hole.end)), hole.missing, hole.lost)
            for hole in holes
            if hole.symbol == own.symbol
        ]
        return [gap for gap in known if gap not in own.gaps]

    def _put(
        self, path: str, kind: str, symbol: str, local: Path, rows: int, sources: Collection[str]
    ) -> None:
        sha256, size = digest(local), local.stat().st_size
        if kind == "ticks" and self._listed(path) is not None:
            self._handed.add(sha256)
        self.store.put(path, local)
        self.files.append(ManifestFile(path, kind, symbol, sha256, size, rows, sorted(sources)))

    def _about(self, symbol: str, digits: int) -> dict[str, Any]:
        return {"version": VERSION, "symbol": symbol, "day": str(self.day), "digits": digits}
