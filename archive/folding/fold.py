"""Makes the files of days that are over, each night or by command. What it was killed in the middle of, it
does again: the journal of a day goes last. What retention allows goes with it."""

import asyncio
import contextlib
import fcntl
import logging
import shutil
import sys
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from archive.belonging import check, claim
from archive.journal import TickJournal, TickSegment
from archive.manifest_digests import seal_days
from archive.manifests import (
    VERSION,
    ArchiveManifest,
    BadManifest,
    Hole,
    LedgerAt,
    ManifestFile,
    decoded_of,
    encoded,
    manifest_path,
    parse,
)
from archive.stores import ArchiveStore, NotStored
from core.background import BackgroundLoop
from core.clock import machine_ms
from core.fault_log import LastingFault
from core.program import IS_CHECKOUT, ROOT
from core.times import epoch_ms, iso_ms, moment
from instruments.models import Instrument, WithheldSource
from market.models import LastQuote
from signals_feed.ledger_days import position_before, sealed_days

from .day_files import DayFiles, HandedOver, NotUsable, write_whole
from .parquet import Carried, span_of, with_minutes

logger = logging.getLogger(__name__)

# Nothing of a day comes any more: a minute is closed two seconds after its end, or as a setting says.
OVER_AFTER = timedelta(minutes=2)
# Places of a segment that are damaged.
MOST_TOLD = 5


def over(now: datetime) -> date:
    """The first day that is not over yet."""
    return (now.astimezone(UTC) - OVER_AFTER).date()


class Folded(msgspec.Struct):
    """Up to which day files were made, and where each symbol stood at its end."""

    day: str = ""
    last: dict[str, Carried] = {}


class Folder:
    def __init__(self, journal: TickJournal, store: ArchiveStore, now: datetime) -> None:
        self._journal, self._store, self._now = journal, store, now
        self._note = journal.path / "folded.json"
        self._scratch = journal.path / "folding"
        self._handed = HandedOver(journal.path / "handed.json")
        self._made: set[date] = set()
        self._sealed: Collection[str] = ()

    def run(self) -> list[date]:
        """Returns the days of which files were made, or something was put with them."""
        days = self.due()
        if days:
            claim(self._store)
            self._sealed = sealed_days()
        for day in days:
            self._fold(day)
        return sorted(self._made)

    def due(self) -> list[date]:
        """Days that are over: those of the journal, whatever was noted under a clock that was ahead, and
        yesterday if it has candles."""
        today = over(self._now)
        days = {segment.day for segment in self._journal.segments() if segment.day < today}
        yesterday, folded = today - timedelta(days=1), self._folded().day
        if not str(yesterday) <= folded < str(today) and with_minutes(yesterday):
            days.add(yesterday)
        return sorted(days)

    def _fold(self, day: date) -> None:
        folded = self._folded()
        files = self._make(day, folded.last, is_late=False)
        every = [files]
        every += [self._make(each, folded.last, is_late=True) for each in files.reader.earlier_days()]
        self._note_folded(day, files, folded)
        self._handed.clear()
        sealed = [each.day for each in every if str(each.day) in self._sealed and each.has_ticks]
        self._remove_journal(day, files.reader.damages, sealed)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _remove_journal(
        self, day: date, damages: Mapping[TickSegment, list[tuple[int, int]]], sealed: list[date]
    ) -> None:
        """`sealed` are the days whose files do not take the ticks that came of them."""
        for segment in self._journal.segments():
            if segment.day > day:
                continue
            if segment not in damages:
                self._let_go(segment, sealed)
                continue
            aside, places = self._journal.set_aside(segment, "damaged"), damages[segment]
            damaged = ", ".join(f"{size} bytes at byte {offset}" for offset, size in places[:MOST_TOLD])
            more = f", and {len(places) - MOST_TOLD} more places" if len(places) > MOST_TOLD else ""
            logger.warning(
                "The journal was damaged; ticks that were there are a hole in the manifest. Not read: %s%s. "
                "The segment is kept as %s until you remove it",
                *(damaged, more, aside),
            )

    def _let_go(self, segment: TickSegment, sealed: list[date]) -> None:
        if not sealed:
            self._journal.remove(segment)
            return
        logger.warning(
            "Ticks of %s came after that day was sealed, so its files stay as they are. The segment is "
            "kept as %s until you remove it",
            *(", ".join(map(str, sealed)), self._journal.set_aside(segment, "late")),
        )

    def _make(self, day: date, last: dict[str, Carried], *, is_late: bool) -> DayFiles:
        """`is_late`: what came of a day after its files were made is put with them."""
        withheld = list(WithheldSource.objects.values_list("name", flat=True))
        files = DayFiles(day, self._store, self._scratch, withheld, self._manifest(day), self._handed)
        files.begin()
        # Before the journal is read: what the database knows by now is in it.
        known = _known_numbers()
        files.read(self._journal.segments(), last)
        if str(day) in self._sealed:
            return files
        if files.before is not None and (lost := files.lost()):
            files.before = self._give_up(day, files.before, lost)
        files.put_ticks(known, is_late=is_late)
        files.put_candles(with_minutes(day))
        if files.files or any(files.gaps.values()):
            self._put_manifest(day, files)
        return files

    def _manifest(self, day: date) -> ArchiveManifest | None:
        path = manifest_path(day)
        try:
            return decoded_of(day, self._store.read(path))
        except NotStored:
            return None
        except BadManifest as error:
            cost = "what it says of holes, and of the files with which nothing is put any more"
            raise NotUsable(manifest_path(day), str(error), cost) from None

    def _give_up(self, day: date, before: ArchiveManifest, lost: list[ManifestFile]) -> ArchiveManifest:
        """The manifest records what is lost before anything takes its place: the next run continues from
        there."""
        start, end = (iso_ms(epoch_ms(at)) for at in span_of(day))
        for file in lost:
            logger.warning("%s is gone: its ticks (%d) are a hole of that day", file.path, file.rows)
        holes = [*before.holes, *(Hole(file.symbol, start, end, file.rows, lost=True) for file in lost)]
        left = [file for file in before.files if file not in lost]
        manifest = replace(before, complete=False, holes=_ordered(holes), files=left)
        self._put(day, manifest)
        return manifest

    def _put_manifest(self, day: date, files: DayFiles) -> None:
        holes = [
            Hole(symbol, iso_ms(gap.start_ms), iso_ms(gap.end_ms), gap.missing, gap.is_lost)
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
            holes=_ordered(holes),
            ledger=LedgerAt(*position_before(span_of(day)[1])),
            files=[made[path] for path in sorted(made)],
        )
        if files.before is not None and manifest == replace(files.before, made_at=manifest.made_at):
            return
        self._put(day, manifest)
        self._made.add(day)
        logger.info("Archived %s (files: %d)", day, len(files.files))

    def _put(self, day: date, manifest: ArchiveManifest) -> None:
        local = self._scratch / "manifest.json"
        local.write_bytes(encoded(manifest))
        self._store.put(manifest_path(day), local)

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


def _ordered(holes: list[Hole]) -> list[Hole]:
    return sorted(holes, key=lambda hole: (hole.symbol, hole.start))


def _known_numbers() -> dict[str, tuple[int, int]]:
    """By symbol the last number of a real series, and the digits of its prices."""
    seqs = dict(LastQuote.objects.filter(simulated=False).values_list("instrument__symbol", "seq"))
    digits = Instrument.objects.values_list("symbol", "digits")
    return {symbol: (seqs.get(symbol, 0), number) for symbol, number in digits}


# For how long the files of the archive are kept.
def drop_old(store: ArchiveStore, today: date, days: int, made: list[date]) -> list[date]:
    """The days whose files were removed, the manifest of each first: it never names what is not there. They
    are counted back from the newest that has files, so that no clock that is ahead empties the archive."""
    paths = store.listing() if days else []
    if not paths:
        return []
    newest = max(parse(path).day for path in paths)
    first_kept = min(today, newest + timedelta(days=1)) - timedelta(days=days)
    old = [path for path in paths if parse(path).day < first_kept]
    for path in sorted(old, key=lambda path: parse(path).kind != "manifest"):
        store.remove(path)
    dropped = sorted({parse(path).day for path in old})
    for day in dropped:
        if day in made:
            logger.warning("Dropped %s as soon as it was archived: ARCHIVE_DAYS is %d", day, days)
        else:
            logger.info("Dropped %s from the archive: ARCHIVE_DAYS is %d", day, days)
    return dropped


# What is done each night.
class Busy(Exception):
    """Another process is at it."""


def fold_what_is_due(journal: TickJournal, store: ArchiveStore, now: datetime, keep_days: int) -> list[date]:
    """Returns the days of which files were made, or something was put with them."""
    journal.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    with journal.path.joinpath("folding.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy from None
        made = Folder(journal, store, now).run()
        check(store)
        seal_days(store, over(now))
        drop_old(store, now.astimezone(UTC).date(), keep_days, made)
        return made


# Starts the nightly work beside the engine, in a process of its own: the engine's loop waits for nothing.
LOOK_S = 30.0
RETRY_S = 300.0
# What it says last is its reason.
LONGEST_REASON = 300


class NotFolded(Exception):
    """The nightly work did not end well; the reason is a sentence."""


class Nightly:
    """Once a day, and until it succeeds."""

    def __init__(self) -> None:
        self.done: date | None = None
        """The day up to which everything is folded."""
        self.fault = ""
        self._loop = BackgroundLoop(
            "archive folding",
            self.look,
            fault=LastingFault(logger, "The files of the archive are not made", logging.ERROR),
            broke="The files of the archive could not be made",
            passing=(NotFolded, OSError),
            before=LOOK_S,
            again=RETRY_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def look(self) -> None:
        day = over(moment(machine_ms()))
        if day == self.done:
            return
        try:
            await run_apart()
        except (NotFolded, OSError) as error:
            self.fault = str(error)
            raise
        self.done, self.fault = day, ""


async def run_apart() -> None:
    program = [str(ROOT / "manage.py")] if IS_CHECKOUT else ["-m", "tickwire_server"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *program, "fold_archive"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    finally:
        # When this is cancelled: it does the same again the next time.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    why = (lines.pop() if lines else f"it ended with {process.returncode}") if process.returncode else ""
    # Lines of the log, in the form in which this process writes its own.
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    if process.returncode:
        raise NotFolded(why.removeprefix("CommandError: ")[:LONGEST_REASON])


nightly = Nightly()
