"""The files of one day, made in a folder of their own and handed to the store when they are whole."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from archive.journal import TickSegment
from archive.layout import candles_path, ticks_path
from archive.manifests import ArchiveManifest, ManifestFile, NumberGap, joined
from archive.stores import ArchiveStore, NotStored
from core.times import epoch_ms, read_iso
from instruments.handing_on import may_be_handed_on

from .candles import candle_table
from .merging import Merged, merged
from .notes import HandedOver
from .parquet import TickWriter, candle_schema, digest, write_table
from .reading import DayReader
from .rows import Carried, SymbolDay

if TYPE_CHECKING:
    from .candles import ArchivedInstrument

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
            if not table.num_rows or not may_be_handed_on(sources, self._withheld):
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
        if may_be_handed_on(sources, self._withheld):
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
        """Those of its files that are gone, where something is to be put with them."""
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
