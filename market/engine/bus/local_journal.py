"""What an engine within its process has published and the database does not hold yet, in files: kill -9
takes nothing along that anybody was sent. A power cut may, as nothing waits for the disk. Files that the
database does hold stay for two minutes, so that the streams of the next process can send them again; the
newest stays longer, as it says how far the database must be."""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from core.fault_log import LastingFault
from market.prices.records import AnyRecord

from .journal import (
    KEEP_MS,
    JournalEntry,
    JournalPosition,
    RecentRecords,
    StreamNumbers,
    falls_short,
    read_entries,
)

logger = logging.getLogger(__name__)

# Told apart by the kernel at every start of the machine.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# So much waits for the database only when it has been away for hours.
MOST_BYTES = 256 * 1024 * 1024

# Of what the database holds the oldest goes first; a file is as long as a flush.
MOST_KEPT_BYTES, MOST_KEPT_FILES = 128 * 1024 * 1024, 1_000
UNWRITTEN, KEPT = ".journal", ".kept"
"""Bytes before each entry: its length, and a checksum of it."""
encode = msgspec.msgpack.Encoder().encode


class JournalHead(msgspec.Struct):
    """Whose entries the segments hold."""

    epoch: str
    boot: str
    closed: int | None = None
    """The number at which it ended in order; None while it goes on, or was killed."""
    given: StreamNumbers = {}
    """Numbers that were given, perhaps not the last: what the database knows may not be less."""


class Segment(NamedTuple):
    path: Path
    last: int
    last_ms: int
    size: int


class Found(NamedTuple):
    tail: list[JournalEntry]
    """What was published after the place."""
    recent: RecentRecords
    """All that is known of what was published, the tail too."""


class LocalJournal:
    """Entries in files that are as short as a flush is long. Whoever holds its lock writes it."""

    def __init__(self, folder: Path, numbers: Callable[[], StreamNumbers]) -> None:
        """`numbers` are those that the engine knows of; when this opens, from the database."""
        self._folder, self._numbers = folder, numbers
        self._lock: BinaryIO | None = None
        self._is_off = False
        """Nothing is written: the disk would not take it."""
        self.has_hole = False
        """What the database does not hold yet is not all here."""
        self._lacks: int | None = None
        """Up to this number nothing is here: the database has to hold that."""
        self._trouble = LastingFault(
            logger, f"The journal in {folder} has a hole, a kill can cost a second of ticks"
        )
        self._file: BinaryIO | None = None
        self._last = self._last_ms = self._bytes = self._size = 0
        self._segments: list[Segment] = []
        """Those that are complete, oldest first."""
        self._kept: deque[Segment] = deque()
        """Those that the database holds, oldest first."""
        self._kept_bytes = 0

    def open(self, place: JournalPosition) -> Found | None:
        """None where nobody can tell what was published, and all begins anew."""
        try:
            if not self._take_lock():
                logger.warning("%s is another process': this one keeps no journal", self._folder)
                return None
            return self._read(place)
        except (OSError, msgspec.MsgspecError) as error:
            logger.warning("The journal in %s cannot be read: %s", self._folder, error)
            if self._lock is None:
                self._is_off = self.has_hole = True
            return None

    @property
    def is_whole(self) -> bool:
        """A kill takes nothing along that was published."""
        return self._is_on and self._lacks is None

    @property
    def _is_on(self) -> bool:
        return self._lock is not None and not self._is_off

    def begin(self, place: JournalPosition, *, anew: bool) -> None:
        if not self._is_on:
            return
        try:
            if anew:
                self._lacks, self._bytes = place.position, 0
                for path in (*self._paths(UNWRITTEN), *self._paths(KEPT)):
                    path.unlink()
                self._segments.clear()
                self._kept.clear()
                self._kept_bytes = 0
            self._write_head(JournalHead(place.epoch, _boot(), given=self._numbers()))
        except OSError as error:
            self._give_up(error)

    def go_on(self, place: JournalPosition) -> None:
        """Behind a hole, if there is one: what is before it the database will hold, or nobody."""
        if not self._is_off:
            return
        try:
            if self._lock is None and not self._take_lock():
                return
        except OSError as error:
            self._trouble.tell(error)
            return
        self._is_off = False
        self.begin(place, anew=True)

    def add(self, number: int, records: list[AnyRecord], at_ms: int) -> None:
        if not self._is_on:
            return
        data = encode(JournalEntry(number, records, at_ms))
        try:
            if self._file is None:
                self._file = self._folder.joinpath(f"{number:016d}{UNWRITTEN}").open("ab", buffering=0)
                self._size = 0
            entry = len(data).to_bytes(4, "big") + zlib.crc32(data).to_bytes(4, "big") + data
            # A disk that fills up takes a part of it, and says nothing.
            if self._file.write(entry) < len(entry):
                raise OSError("the disk has no room for all of an entry")
            self._bytes += len(data)
            self._size += len(data)
            if self._bytes > MOST_BYTES:
                raise OSError(f"more than {MOST_BYTES} bytes wait for the database")
        except OSError as error:
            self._give_up(error)
        self._last, self._last_ms = number, at_ms

    def turn(self) -> None:
        """What comes now is of the next number."""
        if self._file is not None:
            path = Path(self._file.name)
            self._file.close()
            self._file = None
            self._segments.append(Segment(path, self._last, self._last_ms, self._size))

    def forget(self, number: int, now_ms: int) -> None:
        """The database holds all up to it."""
        if self._is_on and self._lacks is not None and number >= self._lacks:
            self._lacks, self.has_hole = None, False
            self._trouble.over()
        while self._segments and self._segments[0].last <= number:
            segment = self._segments.pop(0)
            try:
                self._keep(segment._replace(path=segment.path.rename(segment.path.with_suffix(KEPT))))
            except OSError as error:
                logger.warning("%s is lost for those who resume after a restart: %s", segment.path, error)
        if not self._segments:
            self._bytes = 0
        while len(self._kept) > 1 and self._is_too_much(self._kept[0], now_ms):
            segment = self._kept.popleft()
            self._kept_bytes -= segment.size
            segment.path.unlink(missing_ok=True)

    def close(self, place: JournalPosition) -> None:
        self.turn()
        if self._lock is not None:
            if not self._segments and self._is_on:
                self._write_head(JournalHead(place.epoch, _boot(), place.position, self._numbers()))
            self._lock.close()
            self._lock = None

    def _keep(self, segment: Segment) -> None:
        self._kept.append(segment)
        self._kept_bytes += segment.size

    def _is_too_much(self, oldest: Segment, now_ms: int) -> bool:
        is_old = oldest.last_ms < now_ms - KEEP_MS
        return is_old or self._kept_bytes > MOST_KEPT_BYTES or len(self._kept) > MOST_KEPT_FILES

    def _take_lock(self) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = self._folder.joinpath("lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def _read(self, place: JournalPosition) -> Found | None:
        head_path = self._folder / "head"
        if not head_path.exists():
            return None
        head = msgspec.msgpack.decode(head_path.read_bytes(), type=JournalHead)
        # After a power cut nobody knows which numbers were given beyond those that reached the disk.
        if head.epoch != place.epoch or head.boot != _boot():
            return None
        recent = RecentRecords()
        self._read_kept(recent)
        entries = self._read_unwritten()
        for entry in entries:
            if entry.number <= place.position:
                recent.add(entry.at_ms, entry.records)
        if not self._fits(head, place, entries, recent):
            return None
        tail = [entry for entry in entries if entry.number > place.position]
        for entry in tail:
            recent.add(entry.at_ms, entry.records)
        return Found(tail, recent)

    def _fits(
        self, head: JournalHead, place: JournalPosition, entries: list[JournalEntry], recent: RecentRecords
    ) -> bool:
        """Whether the database stands where these files say: it may be another, or an older state of it."""
        if self._kept and self._kept[-1].last > place.position:
            return False
        if entries and entries[0].number > place.position + 1:
            return False
        # Killed without entries, it stood at what was written last; without a file of that, nothing ever was.
        if not entries and head.closed not in (None, place.position):
            return False
        known = self._numbers()
        return not falls_short(known, recent.numbers) and not falls_short(known, head.given)

    def _read_unwritten(self) -> list[JournalEntry]:
        entries: list[JournalEntry] = []
        for path in self._paths(UNWRITTEN):
            data = path.read_bytes()
            found, size = read_entries(data)
            if not found:
                # The next may name its file so: nothing may stand in it.
                path.unlink()
                continue
            if size < len(data):
                # Torn by the kill, and so sent to nobody.
                os.truncate(path, size)
            self._segments.append(Segment(path, found[-1].number, found[-1].at_ms, size))
            entries += found
        return entries

    def _read_kept(self, recent: RecentRecords) -> None:
        for path in self._paths(KEPT):
            data = path.read_bytes()
            found, size = read_entries(data)
            for entry in found:
                recent.add(entry.at_ms, entry.records)
            if size < len(data):
                logger.warning("%s is damaged: what it held cannot be sent again", path)
            last, last_ms = (found[-1].number, found[-1].at_ms) if found else (0, 0)
            self._keep(Segment(path, last, last_ms, size))

    def _paths(self, suffix: str) -> list[Path]:
        return sorted(self._folder.glob(f"*{suffix}"))

    def _write_head(self, head: JournalHead) -> None:
        fresh = self._folder / "head.new"
        fresh.write_bytes(encode(head))
        fresh.replace(self._folder / "head")

    def _give_up(self, error: OSError) -> None:
        """A journal with a hole is none: after a kill the numbering begins anew."""
        self._trouble.tell(error)
        self._is_off = self.has_hole = True
        if self._file is not None:
            self._file.close()
            self._file = None
        try:
            self._folder.joinpath("head").unlink(missing_ok=True)
        except OSError as further:
            logger.error("The journal in %s cannot be taken away: %s", self._folder, further)


def _boot() -> str:
    return BOOT_ID.read_text().strip() if os.path.exists(BOOT_ID) else ""
