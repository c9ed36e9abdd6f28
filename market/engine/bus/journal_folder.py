"""The folder of a local journal: a head that says whose it is, segments that the database does not hold yet,
and those that it holds but the streams may send again."""

import fcntl
import logging
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from market.prices.records import JournalPosition

from .journal import JournalEntry, RecentRecords, StreamNumbers, encode, read_entries

logger = logging.getLogger(__name__)

# Told apart by the kernel at every start of the machine.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UNWRITTEN, KEPT = ".journal", ".kept"


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
    """What was published after the written position."""
    recent: RecentRecords
    """All that is known of what was published, the tail too."""


class JournalFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def take_lock(self) -> BinaryIO | None:
        """None where another process has it."""
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
        """None where the entries are not those that follow it."""
        path = self.path / "head"
        if not path.exists():
            return None
        head = msgspec.msgpack.decode(path.read_bytes(), type=JournalHead)
        # After a power cut nobody knows which numbers were given beyond those that reached the disk.
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
                    # Torn by the kill, and so sent to nobody.
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
