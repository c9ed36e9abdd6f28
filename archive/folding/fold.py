"""Makes the files of days that are over. What it was killed in the middle of, it does again: the journal of a
day goes last."""

import logging
import os
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from archive.journal import TickJournal
from archive.layout import manifest_path
from archive.manifests import VERSION, ArchiveManifest, BadManifest, Hole, LedgerAt, decoded, encoded
from archive.stores import ArchiveStore, NotStored, sync_folder
from core.times import iso_ms
from instruments.models import Instrument, WithheldSource
from market.models import LastQuote
from signals_feed.ledger_days import position_before

from .candles import span_of, with_minutes
from .day_files import DayFiles, NotUsable
from .rows import Carried

logger = logging.getLogger(__name__)

# Nothing of a day comes any more: a minute is closed two seconds after its end, or as a setting says.
OVER_AFTER = timedelta(minutes=2)


class Folded(msgspec.Struct):
    """Up to which day files were made, and where each symbol stood at its end."""

    day: str = ""
    last: dict[str, Carried] = {}


class Folder:
    def __init__(self, journal: TickJournal, store: ArchiveStore, now: datetime) -> None:
        self._journal, self._store, self._now = journal, store, now
        self._note = journal.path / "folded.json"
        self._scratch = journal.path / "folding"

    def run(self) -> list[date]:
        """Returns the days of which files were made."""
        return [day for day in self.due() if self._fold(day)]

    def due(self) -> list[date]:
        """Days that are over: those of the journal, and yesterday for its candles."""
        over = (self._now.astimezone(UTC) - OVER_AFTER).date()
        folded = self._folded().day
        known = {segment.day for segment in self._journal.segments()} | {over - timedelta(days=1)}
        return sorted(day for day in known if str(day) > folded and day < over)

    def _fold(self, day: date) -> bool:
        folded = self._folded()
        files = self._make(day, folded.last, is_late=False)
        for earlier in files.reader.earlier_days():
            self._make(earlier, folded.last, is_late=True)
        self._note_folded(day, files, folded)
        for segment in self._journal.segments():
            if segment.day <= day:
                self._journal.remove(segment)
        shutil.rmtree(self._scratch, ignore_errors=True)
        return bool(files.files)

    def _make(self, day: date, last: dict[str, Carried], *, is_late: bool) -> DayFiles:
        """`is_late`: what came of a day after its files were made is put with them."""
        withheld = list(WithheldSource.objects.values_list("name", flat=True))
        files = DayFiles(day, self._store, self._scratch, withheld, self._manifest(day))
        files.begin()
        # Before the journal is read: what the database knows by now is in it.
        known = _known_numbers()
        files.read(self._journal.segments(), last, is_late=is_late)
        files.put_ticks(known, is_late=is_late)
        files.put_candles(with_minutes(day))
        if files.files or any(files.gaps.values()):
            self._put_manifest(day, files)
        return files

    def _manifest(self, day: date) -> ArchiveManifest | None:
        path = manifest_path(day)
        try:
            return decoded(self._store.read(path))
        except NotStored:
            return None
        except BadManifest as error:
            raise NotUsable(manifest_path(day), str(error)) from None

    def _put_manifest(self, day: date, files: DayFiles) -> None:
        holes = [
            Hole(symbol, iso_ms(gap.start_ms), iso_ms(gap.end_ms), gap.missing)
            for symbol, gaps in sorted(files.gaps.items())
            for gap in gaps
        ]
        made = {file.path: file for file in files.files}
        if files.before is not None:
            made = {file.path: file for file in files.before.files} | made
            holes += [hole for hole in files.before.holes if hole.symbol not in files.gaps]
        manifest = ArchiveManifest(
            day=str(day),
            version=VERSION,
            made_at=iso_ms(int(self._now.timestamp() * 1000)),
            complete=not holes,
            holes=sorted(holes, key=lambda hole: (hole.symbol, hole.start)),
            ledger=LedgerAt(*position_before(span_of(day)[1])),
            files=[made[path] for path in sorted(made)],
        )
        if files.before is not None and manifest == replace(files.before, made_at=manifest.made_at):
            return
        local = self._scratch / "manifest.json"
        local.write_bytes(encoded(manifest))
        self._store.put(manifest_path(day), local)
        logger.info("Archived %s: %d files", day, len(files.files))

    def _folded(self) -> Folded:
        try:
            return msgspec.json.decode(self._note.read_bytes(), type=Folded)
        except FileNotFoundError:
            return Folded()

    def _note_folded(self, day: date, files: DayFiles, before: Folded) -> None:
        last: dict[str, Any] = dict(before.last)
        for symbol, own in files.reader.symbols.items():
            last.pop(symbol, None)
            if (carries := own.carries) is not None:
                last[symbol] = carries
        self._journal.path.mkdir(parents=True, exist_ok=True)
        write_whole(self._note, msgspec.json.encode(Folded(str(day), last)))


def write_whole(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def _known_numbers() -> dict[str, tuple[int, int]]:
    """By symbol the last number of a real series, and the digits of its prices."""
    seqs = dict(LastQuote.objects.filter(simulated=False).values_list("instrument__symbol", "seq"))
    digits = Instrument.objects.values_list("symbol", "digits")
    return {symbol: (seqs.get(symbol, 0), number) for symbol, number in digits}
