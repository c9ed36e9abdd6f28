"""The open day: what the engine decided, in files that are on the disk before the database says so."""

import logging
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from importlib.util import find_spec
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeGuard

import msgspec
from django.conf import settings

from archive.stores import sync_folder
from core.clock import machine_ms
from core.fault_log import LastingFault
from instruments.facts import is_simulated
from market.engine import SymbolStanding
from market.prices import AnyRecord, EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

# What a segment of the journal holds. Length and checksum precede each frame, so that a frame which a kill or
# a power cut tore is recognised.
VERSION = 1
SIZES = 8
# No frame is longer: a greater length is damage, and no memory is allocated for it.
MOST_BYTES = 1 << 26

KeptRecord = TickAccepted | EmptyMinute | HistoryMinute | SeriesBegan


class Opened(msgspec.Struct, array_like=True, tag=0):
    """The first frame of a segment."""

    version: int
    at_ms: int
    candle_price: str
    standings: dict[str, tuple[int, int]] | None = None
    """What the database knew when an engine began, by symbol: the last number and the end of the last closed
    minute. What segments before this one have beyond that is repeated in this one, or does not count. None if
    the same engine continues."""


class HeardRecords(msgspec.Struct, array_like=True, tag=1):
    """Records in the order in which the engine decided them."""

    epoch: str
    records: list[KeptRecord]


Frame = Opened | HeardRecords
OnDamage = Callable[[int, int], None]
"""Receives the byte of the segment at which the damage begins, and the number of damaged bytes."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


def framed(frame: Frame) -> bytes:
    body = _encode(frame)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


# How the body of an `Opened` and of a `HeardRecords` begins.
BODY = re.compile(rb"\x95\x00|\x93\x01")


def whole_frames(blocks: Iterable[bytes], on_damage: OnDamage = lambda offset, size: None) -> Iterator[Frame]:
    """The whole frames. `on_damage` is called for what lies between two of them and is no frame; what follows
    the last was torn by a kill or a power cut, and is the ordinary end."""
    rest, offset = b"", 0
    damaged: int | None = None
    for block in chain(blocks, (b"",)):
        rest += block
        start = 0
        while start < len(rest):
            end = _end(rest, start)
            if end is None and block:
                break
            if end is not None and _is_whole(rest, start, end):
                if damaged is not None:
                    on_damage(damaged, offset + start - damaged)
                    damaged = None
                yield _decode(rest[start + SIZES : end])
                start = end
            else:
                damaged = offset + start if damaged is None else damaged
                start = _next_body(rest, start + SIZES + 1) - SIZES
        rest, offset = rest[start:], offset + start


def _is_whole(data: bytes, start: int, end: int) -> bool:
    return end > start and zlib.crc32(data[start + SIZES : end]) == _number(data, start + 4)


def _next_body(data: bytes, start: int) -> int:
    """Where the body of a frame may begin; in what comes after `data`, if nowhere in it."""
    found = BODY.search(data, start)
    return found.start() if found else max(start, len(data) - 1)


def _end(data: bytes, start: int) -> int | None:
    """Where the frame ends that begins here; None if it is not all there, and `start` if it cannot be one."""
    if len(data) < start + SIZES:
        return None
    size = _number(data, start)
    if not 0 < size <= MOST_BYTES:
        return start
    end = start + SIZES + size
    return end if len(data) >= end else None


def _number(data: bytes, start: int) -> int:
    return int.from_bytes(data[start : start + 4], "big")


# The folder of the journal: numbered segments, in the order in which they were opened.
NAME = re.compile(r"(\d{10})-(\d{4}-\d\d-\d\d)\.ticks", re.ASCII)
BLOCK = 1 << 20
READABLE = 0o600


class TickSegment(NamedTuple):
    number: int
    day: date
    """No tick of a later day is in it."""
    path: Path

    def frames(self, on_damage: OnDamage = lambda offset, size: None) -> Iterator[Frame]:
        with self.path.open("rb") as file:
            yield from whole_frames(iter(lambda: file.read(BLOCK), b""), on_damage)

    def head(self) -> Opened | None:
        """None if it was torn at its beginning."""
        first = next(self.frames(), None)
        return first if isinstance(first, Opened) else None


class TickJournal:
    def __init__(self, path: Path) -> None:
        self.path = path

    def segments(self) -> list[TickSegment]:
        found = ((NAME.fullmatch(path.name), path) for path in self.path.glob("*.ticks"))
        return sorted(
            TickSegment(int(match[1]), date.fromisoformat(match[2]), path) for match, path in found if match
        )

    def create(self, day: date) -> tuple[int, Path]:
        """The descriptor and the path of a new segment, after all that are there."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True, mode=0o700)
            sync_folder(self.path.parent)
        number = max((segment.number for segment in self.segments()), default=0)
        while True:
            number += 1
            try:
                path = self.path / f"{number:010d}-{day}.ticks"
                opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, READABLE)
            except FileExistsError:
                # Another engine that stands by on this machine came first.
                continue
            sync_folder(self.path)
            return opened, path

    def remove(self, segment: TickSegment) -> None:
        segment.path.unlink(missing_ok=True)
        sync_folder(self.path)

    def set_aside(self, segment: TickSegment, why: str) -> Path:
        """It is no longer read, and an operator may look at it; returns its path."""
        aside = segment.path.with_name(f"{segment.path.name}.{why}")
        segment.path.rename(aside)
        sync_folder(self.path)
        return aside


# Writes what the engine decided into segments, in a thread of its own. What the disk does not take waits,
# and in the end goes: prices never wait for the archive.
logger = logging.getLogger(__name__)
# Frames are small enough that encoding one does not block.
MOST_IN_FRAME = 500
# What waits for a disk that takes nothing: ten seconds at the highest rate that is promised.
MOST_WAITING = 200_000

Batch = tuple[str, list[AnyRecord]]
"""The epoch of the numbering, and what was decided in it."""


class TickJournalWriter:
    def __init__(
        self, folder: TickJournal, candle_price: str, standings: Mapping[str, SymbolStanding], at_ms: int
    ) -> None:
        self._folder = folder
        self._head: Opened | None = Opened(VERSION, at_ms, candle_price, dict(standings))
        """Of the first segment; None once that is written."""
        self._candle_price = candle_price
        self._waiting: deque[HeardRecords] = deque()
        self._file: int | None = None
        self._day = date.min
        self._path: Path | None = None
        self._unsynced: list[HeardRecords] = []
        """Written, and perhaps not on the disk yet."""
        self.fault = ""
        """Why nothing is written now."""
        self.written = self.lost = 0
        """Records."""
        self._trouble = LastingFault(
            logger, f"The archive in {folder.path} stands still, prices go on", logging.ERROR
        )

    def write(self, batches: list[Batch]) -> None:
        """On return, the batches are on the disk or the fault is recorded. It never raises."""
        try:
            self._take(batches)
            self._write_waiting()
        except OSError as error:
            self._stand_still(error)
        except Exception:  # noqa: BLE001 - candles are written whatever breaks here
            logger.exception("The archive cannot write what it was given, and drops it")
            self.fault = "it broke: see the log"
            self._drop_all()
            self._leave_file()
        else:
            self.fault = ""
            self._trouble.over()

    def close(self) -> None:
        self._leave_file()

    def _take(self, batches: list[Batch]) -> None:
        for epoch, own in groupby(batches, itemgetter(0)):
            kept = [record for _, records in own for record in records if is_kept(record)]
            for start in range(0, len(kept), MOST_IN_FRAME):
                self._waiting.append(HeardRecords(epoch, kept[start : start + MOST_IN_FRAME]))

    def _write_waiting(self) -> None:
        if self._head is not None and not self._waiting and not self._folder.segments():
            # Of simulated prices alone nothing is kept, not even an empty file.
            return
        if self._head is not None:
            self._open(self._day_of(None))
        has_more = bool(self._waiting)
        while self._waiting:
            frame = self._waiting[0]
            file, day = self._file, self._day_of(frame)
            if file is None or day != self._day:
                self._sync()
                file = self._open(day)
            _append(file, framed(frame))
            self._unsynced.append(self._waiting.popleft())
        if has_more:
            self._sync()

    def _day_of(self, frame: HeardRecords | None) -> date:
        """That of its last record, or today: a segment of a past day may be read and removed at any moment,
        and minutes of it may come hours later."""
        times = [] if frame is None else [time_of(record) for record in frame.records]
        return datetime.fromtimestamp(max([machine_ms(), *times]) // 1000, UTC).date()

    def _open(self, day: date) -> int:
        self._leave_file()
        self._file, self._path = self._folder.create(day)
        self._day = day
        _append(self._file, framed(self._head or Opened(VERSION, 0, self._candle_price)))
        self._head = self._path = None
        return self._file

    def _sync(self) -> None:
        if self._file is not None:
            os.fsync(self._file)
            if self._unsynced and not os.fstat(self._file).st_nlink:
                raise OSError("the file of the open day was removed")
        self.written += sum(len(frame.records) for frame in self._unsynced)
        self._unsynced.clear()

    def _stand_still(self, error: OSError) -> None:
        """The reader stops at a torn frame and continues with the next segment; what is in both counts
        once."""
        self.fault = error.strerror or str(error)
        self._waiting.extendleft(reversed(self._unsynced))
        self._unsynced.clear()
        self._leave_file()
        if self._path is not None:
            # Without its head it says nothing, and one a second would fill the folder.
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            self._path = None
        waiting = sum(len(frame.records) for frame in self._waiting)
        while waiting > MOST_WAITING:
            gone = len(self._waiting.popleft().records)
            self.lost += gone
            waiting -= gone
        self._trouble.tell(OSError(f"{self.fault}; {waiting} records wait, {self.lost} are lost"))

    def _drop_all(self) -> None:
        self.lost += sum(len(frame.records) for frame in (*self._unsynced, *self._waiting))
        self._unsynced.clear()
        self._waiting.clear()

    def _leave_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _append(file: int, data: bytes) -> None:
    # A full disk writes a part of it without an error.
    if os.write(file, data) < len(data):
        raise OSError("the disk has no room for all of a frame")


def is_kept(record: AnyRecord) -> TypeGuard[KeptRecord]:
    """What is simulated is no data of a venue. Where a series begins is kept: the numbers go on over it."""
    # Nearly all are ticks, and each is asked.
    if type(record) is TickAccepted:
        return not is_simulated(record.source)
    if isinstance(record, EmptyMinute):
        return not is_simulated(record.source)
    if isinstance(record, HistoryMinute):
        return not is_simulated(record.minute.source)
    return isinstance(record, SeriesBegan)


def time_of(record: KeptRecord) -> int:
    if isinstance(record, TickAccepted):
        return record.time_ms
    if isinstance(record, EmptyMinute):
        return record.minute_ms
    return record.minute.opened_ms if isinstance(record, HistoryMinute) else record.at_ms


LACKS_PYARROW = (
    "pyarrow is missing, with which the archive writes and reads Parquet: install it (the extra `archive`)"
)


def journal_folder() -> TickJournal:
    return TickJournal(Path(settings.VAR_DIR) / "ticks")


def has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None
