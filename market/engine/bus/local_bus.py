"""The bus of an engine within the process that shows its prices. Files hold the journal until the database
does: kill -9 loses nothing that was sent, but a power cut may, as nothing waits for the disk. They stay two
minutes more, for streams that resume in the next process; the newest says how far the database must be."""

import fcntl
import logging
import os
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from core.clock import now_ms
from core.fault_log import LastingFault
from market.engine.status import EngineStatus, status_record
from market.prices.records import AnyRecord, JournalPosition, StatusRecord

from .journal import (
    KEEP_MS,
    JournalEntry,
    JournalWriter,
    RecentRecords,
    RecordListener,
    StreamNumbers,
    encode,
    falls_short,
    new_epoch,
    read_entries,
)

# The folder of a local journal: a head that says whose it is, segments that the database does not hold yet,
# and those that it holds but the streams may send again.
logger = logging.getLogger(__name__)

# The kernel makes a new one each time the machine starts.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UNWRITTEN, KEPT = ".journal", ".kept"


class JournalHead(msgspec.Struct):
    """Whose entries the segments hold."""

    epoch: str
    boot: str
    closed: int | None = None
    """The number at which it ended in order; None while it is in use, or if it was killed."""
    given: StreamNumbers = {}
    """Numbers that were given, perhaps not the last: what the database knows may not be less."""


class Segment(NamedTuple):
    path: Path
    last: int
    last_ms: int
    size: int


class Found(NamedTuple):
    tail: list[JournalEntry]
    """What was published after the written position."""
    recent: RecentRecords
    """All that is known of what was published, the tail too."""


class JournalFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def take_lock(self) -> BinaryIO | None:
        """None if another process has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = self.path.joinpath("lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock

    def open_segment(self, number: int) -> BinaryIO:
        return self.path.joinpath(f"{number:016d}{UNWRITTEN}").open("ab", buffering=0)

    def read_head(self, position: JournalPosition) -> JournalHead | None:
        """None if the entries are not those that follow it."""
        path = self.path / "head"
        if not path.exists():
            return None
        head = msgspec.msgpack.decode(path.read_bytes(), type=JournalHead)
        # After a power cut, numbers beyond those that reached the disk are unknown.
        return head if head.epoch == position.epoch and head.boot == boot_id() else None

    def write_head(self, head: JournalHead) -> None:
        fresh = self.path / "head.new"
        fresh.write_bytes(encode(head))
        fresh.replace(self.path / "head")

    def take_head_away(self) -> None:
        try:
            self.path.joinpath("head").unlink(missing_ok=True)
        except OSError as error:
            logger.error("The journal in %s cannot be taken away: %s", self.path, error)

    def read(self, suffix: str) -> tuple[list[JournalEntry], list[Segment]]:
        """What is whole of the segments, oldest first."""
        entries: list[JournalEntry] = []
        segments: list[Segment] = []
        for path in self._paths(suffix):
            data = path.read_bytes()
            found, size = read_entries(data)
            if not found and suffix == UNWRITTEN:
                # The next may name its file so: nothing may stand in it.
                path.unlink()
                continue
            if size < len(data):
                if suffix == UNWRITTEN:
                    # Torn by the kill, and so never sent.
                    os.truncate(path, size)
                else:
                    logger.warning("%s is damaged: what it held cannot be sent again", path)
            last, last_ms = (found[-1].number, found[-1].at_ms) if found else (0, 0)
            segments.append(Segment(path, last, last_ms, size))
            entries += found
        return entries, segments

    def clear(self) -> None:
        for path in (*self._paths(UNWRITTEN), *self._paths(KEPT)):
            path.unlink()

    def _paths(self, suffix: str) -> list[Path]:
        return sorted(self.path.glob(f"*{suffix}"))


def boot_id() -> str:
    return BOOT_ID.read_text().strip() if os.path.exists(BOOT_ID) else ""


# So much waits for the database only when it has been away for hours.
MOST_BYTES = 256 * 1024 * 1024

# Of what the database holds the oldest goes first; a file is as long as a flush.
MOST_KEPT_BYTES, MOST_KEPT_FILES = 128 * 1024 * 1024, 1_000


class LocalJournal:
    """Entries in files, a new one for each flush. The process that holds the lock writes them."""

    def __init__(self, folder: Path, numbers: Callable[[], StreamNumbers]) -> None:
        """`numbers` are those that the engine knows; when this opens, those of the database."""
        self._folder, self._numbers = JournalFolder(folder), numbers
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

    def open(self, position: JournalPosition) -> Found | None:
        """None if it is unknown what was published; then everything restarts."""
        try:
            self._lock = self._folder.take_lock()
            if self._lock is None:
                logger.warning("%s is another process': this one keeps no journal", self._folder.path)
                return None
            return self._read(position)
        except (OSError, msgspec.MsgspecError) as error:
            logger.warning("The journal in %s cannot be read: %s", self._folder.path, error)
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

    def begin(self, position: JournalPosition, *, is_restart: bool) -> None:
        if not self._is_on:
            return
        try:
            if is_restart:
                self._lacks, self._bytes = position.number, 0
                self._folder.clear()
                self._segments.clear()
                self._kept.clear()
                self._kept_bytes = 0
            self._folder.write_head(JournalHead(position.epoch, boot_id(), given=self._numbers()))
        except OSError as error:
            self._give_up(error)

    def go_on(self, position: JournalPosition) -> None:
        """After a hole, if there is one: what precedes it is in the database or lost."""
        if not self._is_off:
            return
        try:
            self._lock = self._lock or self._folder.take_lock()
        except OSError as error:
            self._trouble.tell(error)
            return
        if self._lock is not None:
            self._is_off = False
            self.begin(position, is_restart=True)

    def add(self, number: int, records: list[AnyRecord]) -> int:
        """Returns when that was."""
        is_on, at_ms = self._is_on, now_ms()
        if not is_on:
            return at_ms
        data = encode(JournalEntry(number, records, at_ms))
        try:
            if self._file is None:
                self._file = self._folder.open_segment(number)
                self._size = 0
            entry = len(data).to_bytes(4, "big") + zlib.crc32(data).to_bytes(4, "big") + data
            # A full disk writes a part of it without an error.
            if self._file.write(entry) < len(entry):
                raise OSError("the disk has no room for all of an entry")
            self._bytes += len(data)
            self._size += len(data)
            if self._bytes > MOST_BYTES:
                raise OSError(f"more than {MOST_BYTES} bytes wait for the database")
        except OSError as error:
            self._give_up(error)
        self._last, self._last_ms = number, at_ms
        return at_ms

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

    def close(self, position: JournalPosition) -> None:
        self.turn()
        if self._lock is not None:
            if not self._segments and self._is_on:
                head = JournalHead(position.epoch, boot_id(), position.number, self._numbers())
                try:
                    self._folder.write_head(head)
                except OSError as error:
                    logger.warning("The journal ends as after a kill: %s", error)
            self._lock.close()
            self._lock = None

    def _keep(self, segment: Segment) -> None:
        self._kept.append(segment)
        self._kept_bytes += segment.size

    def _is_too_much(self, oldest: Segment, now_ms: int) -> bool:
        is_old = oldest.last_ms < now_ms - KEEP_MS
        return is_old or self._kept_bytes > MOST_KEPT_BYTES or len(self._kept) > MOST_KEPT_FILES

    def _read(self, position: JournalPosition) -> Found | None:
        head = self._folder.read_head(position)
        if head is None:
            return None
        known, kept = self._folder.read(KEPT)
        for segment in kept:
            self._keep(segment)
        entries, self._segments = self._folder.read(UNWRITTEN)
        recent, tail = RecentRecords(), [entry for entry in entries if entry.number > position.number]
        for entry in (*known, *entries[: len(entries) - len(tail)]):
            recent.add(entry.at_ms, entry.records)
        if not self._fits(head, position, entries, recent):
            return None
        for entry in tail:
            recent.add(entry.at_ms, entry.records)
        return Found(tail, recent)

    def _fits(
        self, head: JournalHead, position: JournalPosition, entries: list[JournalEntry], recent: RecentRecords
    ) -> bool:
        """Whether the database stands where these files say: it may be another, or an older state of it."""
        if self._kept and self._kept[-1].last > position.number:
            return False
        if entries and entries[0].number > position.number + 1:
            return False
        # Killed without entries, it stood at what was written last; without a file of that, nothing ever was.
        if not entries and head.closed not in (None, position.number):
            return False
        known = self._numbers()
        return not falls_short(known, recent.numbers) and not falls_short(known, head.given)

    def _give_up(self, error: OSError) -> None:
        """A journal with a hole is useless: after a kill, the numbering restarts."""
        self._trouble.tell(error)
        self._is_off = self.has_hole = True
        if self._file is not None:
            self._file.close()
            self._file = None
        self._folder.take_head_away()


class LocalBus:
    """One process: the journal gets records before the listeners, which get them at once."""

    def __init__(self, hear: RecordListener, journal: LocalJournal) -> None:
        self._hear = hear
        self._journal = journal
        self.journal_position = JournalPosition(new_epoch(), 0)
        self._recent: RecentRecords | None = None
        self._is_open = False
        """Something was published since the last number was given."""

    async def open(self, writer: JournalWriter, position: JournalPosition) -> list[AnyRecord]:
        """Published records that are not written yet. If they are unknown, so are the numbers given since the
        last checkpoint, and the numbering restarts."""
        self._is_open = False
        found = self._journal.open(position)
        if found is None:
            self.journal_position = position
            await self.restart_numbering(writer)
            return []
        number = found.tail[-1].number if found.tail else position.number
        self.journal_position, self._recent = JournalPosition(position.epoch, number), found.recent
        self._journal.begin(self.journal_position, is_restart=False)
        return [record for entry in found.tail for record in entry.records]

    async def restart_numbering(self, writer: JournalWriter) -> None:
        self.journal_position, self._recent = JournalPosition(new_epoch(), self.journal_position.number), None
        # Until that is in the database, the journal of a killed process belongs to nothing.
        writer.flush_soon()
        self._journal.begin(self.journal_position, is_restart=True)

    def take_recent(self) -> RecentRecords:
        """What was published until now in this numbering, by processes before this one too."""
        recent, self._recent = self._recent or RecentRecords(), None
        return recent

    def publish(self, records: list[AnyRecord]) -> None:
        if type(records[0]) is not StatusRecord:
            self._is_open = True
            at_ms = self._journal.add(self.journal_position.number + 1, records)
            if self._recent is not None:
                self._recent.add(at_ms, records)
        self._hear(records)

    def tell(self, status: EngineStatus) -> None:
        self.publish([status_record(status)])

    def seal(self) -> JournalPosition:
        """Everything published so far gets a number; returns the last. A number without records would be a
        gap."""
        if self._is_open:
            self._is_open = False
            epoch, number = self.journal_position
            self.journal_position = JournalPosition(epoch, number + 1)
            self._journal.turn()
        self._journal.go_on(self.journal_position)
        return self.journal_position

    def written(self, position: JournalPosition) -> None:
        """The database holds everything up to there."""
        self._journal.forget(position.number, now_ms())

    @property
    def is_whole(self) -> bool:
        """A kill takes nothing along that was published, whether or not it is written."""
        return self._journal.is_whole

    @property
    def has_hole(self) -> bool:
        return self._journal.has_hole

    @property
    def fault(self) -> str:
        """All readers are in this process, and what the journal lacks is reported elsewhere."""
        return ""

    async def settle(self) -> None:
        """There are no readers outside this process."""

    async def close(self) -> None:
        self._journal.close(self.journal_position)
