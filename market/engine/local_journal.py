"""What an engine within its process has published and the database does not hold yet, in files: kill -9
takes nothing along that anybody was sent. A power cut may, as nothing waits for the disk."""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from market.prices.records import AnyRecord

from .lease import Place

logger = logging.getLogger(__name__)

# Told apart by the kernel at every start of the machine.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# So much waits for the database only when it has been away for hours.
MOST_BYTES = 256 * 1024 * 1024
SIZES = 8
"""Bytes before each entry: its length, and a checksum of it."""

encode = msgspec.msgpack.Encoder().encode


class Entry(msgspec.Struct, array_like=True, gc=False):
    number: int
    records: list[AnyRecord]


class Head(msgspec.Struct):
    """Whose entries the segments hold."""

    epoch: str
    boot: str
    closed: int | None = None
    """The number at which it ended in order; None while it goes on, or was killed."""


class Segment(NamedTuple):
    path: Path
    last: int


decode = msgspec.msgpack.Decoder(Entry).decode


class LocalJournal:
    """Entries in files that are as short as a flush is long. Whoever holds its lock writes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: BinaryIO | None = None
        self._file: BinaryIO | None = None
        self._last = self._bytes = 0
        self._segments: list[Segment] = []
        """Those that are complete, oldest first."""

    def open(self, place: Place) -> list[Entry] | None:
        """What was published after the place; None where nobody can tell, and all begins anew."""
        try:
            if not self._take_lock():
                logger.warning("%s is another process': this one keeps no journal", self._folder)
                return None
            return self._read(place)
        except (OSError, msgspec.MsgspecError) as error:
            logger.warning("The journal in %s cannot be read: %s", self._folder, error)
            return None

    def begin(self, epoch: str, *, anew: bool) -> None:
        if self._lock is None:
            return
        try:
            if anew:
                for path in self._paths():
                    path.unlink()
                self._segments.clear()
            self._write_head(Head(epoch, _boot()))
        except OSError as error:
            self._give_up(error)

    def add(self, number: int, records: list[AnyRecord]) -> None:
        if self._lock is None:
            return
        data = encode(Entry(number, records))
        try:
            if self._file is None:
                self._file = self._folder.joinpath(f"{number:016d}.journal").open("ab", buffering=0)
            self._file.write(len(data).to_bytes(4, "big") + zlib.crc32(data).to_bytes(4, "big") + data)
            self._bytes += len(data)
            if self._bytes > MOST_BYTES:
                raise OSError(f"more than {MOST_BYTES} bytes wait for the database")
        except OSError as error:
            self._give_up(error)
        self._last = number

    def turn(self) -> None:
        """What comes now is of the next number."""
        if self._file is not None:
            path = Path(self._file.name)
            self._file.close()
            self._file = None
            self._segments.append(Segment(path, self._last))

    def forget(self, number: int) -> None:
        """The database holds all up to it."""
        while self._segments and self._segments[0].last <= number:
            self._segments.pop(0).path.unlink(missing_ok=True)
        if not self._segments:
            self._bytes = 0

    def close(self, place: Place) -> None:
        self.turn()
        if self._lock is not None:
            if not self._segments:
                self._write_head(Head(place.epoch, _boot(), place.position))
            self._lock.close()
            self._lock = None

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

    def _read(self, place: Place) -> list[Entry] | None:
        head_path = self._folder / "head"
        if not head_path.exists():
            return None
        head = msgspec.msgpack.decode(head_path.read_bytes(), type=Head)
        # After a power cut nobody knows which numbers were given beyond those that reached the disk.
        if head.epoch != place.epoch or head.boot != _boot():
            return None
        entries: list[Entry] = []
        for path in self._paths():
            found = list(_entries(path.read_bytes()))
            self._segments.append(Segment(path, found[-1].number if found else 0))
            entries += found
        first = entries[0].number if entries else head.closed
        if first is None or first > place.position + 1 or (not entries and first != place.position):
            return None
        return [entry for entry in entries if entry.number > place.position]

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.journal"))

    def _write_head(self, head: Head) -> None:
        fresh = self._folder / "head.new"
        fresh.write_bytes(encode(head))
        fresh.replace(self._folder / "head")

    def _give_up(self, error: OSError) -> None:
        """A journal with a hole is none: after a kill the numbering begins anew."""
        logger.error("The journal in %s ends, a kill can cost a second of ticks now: %s", self._folder, error)
        if self._lock is not None:
            self._lock.close()
        self._lock = self._file = None
        try:
            self._folder.joinpath("head").unlink(missing_ok=True)
        except OSError as further:
            logger.error("Nor can it be taken away: %s", further)


def _entries(data: bytes) -> Iterator[Entry]:
    """The last one may be torn: it was sent to nobody."""
    start = 0
    while start + SIZES <= len(data):
        size = int.from_bytes(data[start : start + 4], "big")
        checksum = int.from_bytes(data[start + 4 : start + SIZES], "big")
        body = data[start + SIZES : start + SIZES + size]
        if len(body) < size or zlib.crc32(body) != checksum:
            return
        yield decode(body)
        start += SIZES + size


def _boot() -> str:
    return BOOT_ID.read_text().strip() if os.path.exists(BOOT_ID) else ""
