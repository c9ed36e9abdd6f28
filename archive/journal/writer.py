"""Writes what the engine decided into segments, in a thread of its own. What the disk does not take waits,
and in the end goes: prices never wait for the archive."""

import logging
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeGuard

from core.clock import machine_ms
from core.fault_log import LastingFault
from instruments.sources import is_simulated
from market.engine import SymbolStanding
from market.prices import AnyRecord, EmptyMinute, HistoryMinute, SeriesBegan, TickAccepted

from .frames import VERSION, HeardRecords, KeptRecord, Opened, framed
from .segments import TickJournal

logger = logging.getLogger(__name__)
# Frames are small enough that encoding one holds nobody up.
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
        """On the disk when it returns, or said to be not. It never raises."""
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
        """That of its last record, or today: a segment of a day that is over may be read and removed at any
        moment, and minutes of it may come hours later."""
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
        """The reader stops at what is torn and goes on with the next segment; what is in both counts once."""
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
    # A disk that fills up takes a part of it, and says nothing.
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
