"""The accepted ticks of the last day, in files of this program's own: the engine's process writes them, and
each web process of its machine reads them."""

import asyncio
import errno
import logging
import os
import shutil
import time
import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from struct import Struct
from threading import Event, Thread
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from django.conf import settings

from core import clock
from core.fault_log import LastingFault
from market.prices.records import AnyRecord, TickAccepted

from .listeners import EngineStart, SeriesEnding
from .tick_pages import BODY, FoundTicks, KeptTick, TickPlace, WantedTicks, unpack_ticks

# A file has ticks of one symbol, epoch and source, in their order, and nothing else: what it is of stands in
# its name. All records are equally long, so a time and a number are found by halving.
SUM = Struct("<I")
RECORD = Struct(BODY.format + "I")
AT_ONCE = 1_000
"""Records that are read in one piece."""
HOUR_MS = 3_600_000
MOST_FILE_BYTES = 1 << 24
EPOCH_FILE, SUFFIX = "epoch", ".ticks"


class TickFile(NamedTuple):
    """As its name says it; files sort by when they were opened."""

    opened_ms: int
    epoch: str
    source: str
    path: Path

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """None for a file of another kind."""
        opened, _, rest = path.name.removesuffix(SUFFIX).partition("-")
        epoch, dash, source = rest.partition("-")
        return cls(int(opened), epoch, unquote(source), path) if opened.isdecimal() and dash else None


def folder_of(root: Path, symbol: str) -> Path:
    return root / quote(symbol, safe="")


def files_in(folder: Path) -> list[TickFile]:
    found = (TickFile.at(path) for path in folder.glob(f"*{SUFFIX}"))
    return sorted(file for file in found if file is not None)


def packed(tick: TickAccepted) -> bytes:
    body = BODY.pack(tick.seq, tick.time_ms, tick.bid, tick.ask, tick.volume)
    return body + SUM.pack(zlib.crc32(body))


def recent_ticks_folder() -> Path:
    return Path(settings.VAR_DIR) / "recent-ticks"


# The engine's side. Nothing waits for it: what the disk does not take is missing here, and numbers show that.
logger = logging.getLogger(__name__)
WRITE_S, PATIENCE_S = 0.1, 2.0
MOST_WAITING = 200_000
"""Records: ten seconds at the highest rate that is promised."""
LEFT_FREE_BYTES, LEFT_FREE_SHARE = 200_000_000, 0.05
"""Of the disk, whichever is less: candles, the ledger and the archive go on when this has stopped."""

Batch = tuple[str, list[AnyRecord]]
"""The epoch of the numbering, and what was decided in it."""


class TickRun(NamedTuple):
    """Ticks that follow each other in one file."""

    symbol: str
    epoch: str
    source: str
    data: bytearray


def runs_of(batches: Iterable[Batch]) -> list[TickRun]:
    runs, last = list[TickRun](), dict[str, TickRun]()
    for epoch, records in batches:
        for record in records:
            if type(record) is TickAccepted:
                run = last.get(record.symbol)
                if run is None or (run.epoch, run.source) != (epoch, record.source):
                    run = last[record.symbol] = TickRun(record.symbol, epoch, record.source, bytearray())
                    runs.append(run)
                run.data.extend(packed(record))
    return runs


class TickWriter:
    def __init__(self, root: Path, hours: int, most_bytes: int) -> None:
        self._root, self._kept_ms, self._most_bytes = root, hours * HOUR_MS, most_bytes
        self._current: dict[str, TickFile] = {}
        """To which more is appended. After a start each symbol begins another."""
        self._sizes: dict[TickFile, int] = {}
        """Of all files, the oldest first."""
        self._is_listed = False
        self._epoch: str | None = None
        """The one that the folder names; None while unknown."""
        self.bytes = 0
        self.written = self.lost = 0
        """Ticks."""
        self.fault = ""
        """Why nothing is written now."""
        self._trouble = LastingFault(
            logger, f"Recent ticks are not kept in {root}, prices go on", logging.ERROR
        )

    def write(self, epoch: str, batches: Iterable[Batch]) -> None:
        """`epoch` is the present one. It never raises OSError."""
        runs = runs_of(batches)
        try:
            self._list()
            self._tidy()
            self._name_epoch(epoch)
            self._refuse_without_room()
            for run in runs:
                self._append(run)
        except OSError as error:
            self.lost += sum(len(run.data) for run in runs) // RECORD.size
            # What it was torn in is not appended to; a folder that was removed is made again.
            self._current.clear()
            self._is_listed, self._epoch = not isinstance(error, FileNotFoundError), None
            self.fault = error.strerror or str(error)
            self._trouble.tell(error)
        else:
            self.fault = ""
            self._trouble.over()

    def _list(self) -> None:
        if not self._is_listed:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = sorted(file for path in self._root.iterdir() if path.is_dir() for file in files_in(path))
            self._sizes = {file: file.path.stat().st_size for file in found}
            self.bytes, self._is_listed = sum(self._sizes.values()), True

    def _tidy(self) -> None:
        """A file spans an hour, and goes when its last tick is older than any has to be."""
        oldest_ms = clock.now_ms() - self._kept_ms - HOUR_MS
        while self._sizes:
            file = next(iter(self._sizes))
            if file.opened_ms >= oldest_ms and self.bytes <= self._most_bytes:
                return
            file.path.unlink(missing_ok=True)
            self.bytes -= self._sizes.pop(file)
            self._current = {symbol: each for symbol, each in self._current.items() if each != file}

    def _name_epoch(self, epoch: str) -> None:
        if epoch != self._epoch:
            fresh = self._root / f"{EPOCH_FILE}.new"
            fresh.write_text(epoch)
            fresh.replace(self._root / EPOCH_FILE)
            self._epoch = epoch

    def _refuse_without_room(self) -> None:
        disk = shutil.disk_usage(self._root)
        if disk.free < min(LEFT_FREE_BYTES, disk.total * LEFT_FREE_SHARE):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _append(self, run: TickRun) -> None:
        file = self._file_for(run)
        opened = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            written = os.write(opened, run.data)
        finally:
            os.close(opened)
        self._sizes[file] = self._sizes.get(file, 0) + written
        self.bytes += written
        # A full disk writes a part of it without an error.
        if written < len(run.data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.written += written // RECORD.size
        run.data.clear()

    def _file_for(self, run: TickRun) -> TickFile:
        at_ms, file = clock.now_ms(), self._current.get(run.symbol)
        if file is not None and (file.epoch, file.source) == (run.epoch, run.source):
            is_long = self._sizes[file] >= MOST_FILE_BYTES
            if file.opened_ms // HOUR_MS == at_ms // HOUR_MS and not is_long:
                return file
        folder = folder_of(self._root, run.symbol)
        folder.mkdir(exist_ok=True, mode=0o700)
        newest = next(reversed(self._sizes), None)
        # The order of names is that of the ticks, even where a clock is set.
        opened_ms = at_ms if newest is None else max(at_ms, newest.opened_ms + 1)
        name = f"{opened_ms:015d}-{run.epoch}-{quote(run.source, safe='')}{SUFFIX}"
        file = self._current[run.symbol] = TickFile(opened_ms, run.epoch, run.source, folder / name)
        self._sizes[file] = 0
        return file


class TickRecorder:
    """Follows the engine of this process; a thread of its own writes."""

    def __init__(self) -> None:
        self.writer: TickWriter | None = None
        """None while no engine runs here."""
        self._heard = deque[Batch]()
        self._epoch: Callable[[], str] = str
        self._put = self._taken = 0
        """Records, each counted by one thread alone."""
        self._dropped = 0
        self._write_began_s: float | None = None
        self._thread: Thread | None = None
        self._stopped = Event()

    async def begin(self, start: EngineStart) -> None:
        await self.end()
        self._heard, self._stopped, self._epoch = deque(), Event(), start.epoch
        self._put = self._taken = self._dropped = 0
        most_bytes = settings.TICKS_MB * 1_000_000
        self.writer = writer = TickWriter(recent_ticks_folder(), settings.TICKS_HOURS, most_bytes)
        if start.tail:
            # Perhaps not all of it was written here. What is repeated counts once.
            self.hear(start.tail)
        args = writer, self._heard, self._stopped
        self._thread = Thread(target=self._keep_writing, args=args, name="recent ticks", daemon=True)
        self._thread.start()

    async def stored(self, symbols: Collection[str]) -> None:
        """Minutes whose ticks were never sent."""

    def hear(self, records: list[AnyRecord]) -> None:
        if self._put - self._taken > MOST_WAITING:
            self._dropped += len(records)
            return
        self._put += len(records)
        self._heard.append((self._epoch(), records))

    def notes(self, *, is_behind: bool) -> Callable[[], None]:
        return _nothing

    async def series_ends(self, ending: SeriesEnding) -> Callable[[], None]:
        return _nothing

    async def end(self) -> None:
        thread, self._thread = self._thread, None
        self._stopped.set()
        if thread is not None:
            # A disk that hangs holds up no stop.
            await asyncio.to_thread(thread.join, PATIENCE_S)
        self.writer = None

    @property
    def lost(self) -> int:
        """Records that the disk did not take."""
        return self._dropped + (0 if self.writer is None else self.writer.lost)

    @property
    def fault(self) -> str:
        """Why it stands still; empty while it does not."""
        if self.writer is None:
            return ""
        began_s = self._write_began_s
        hangs = began_s is not None and time.monotonic() - began_s > PATIENCE_S
        return "the disk hangs" if hangs else self.writer.fault

    def _keep_writing(self, writer: TickWriter, heard: deque[Batch], stopped: Event) -> None:
        is_last = False
        while not is_last:
            is_last = stopped.wait(WRITE_S)
            self._write_began_s = time.monotonic()
            try:
                writer.write(self._epoch(), self._take(heard))
            except Exception:  # noqa: BLE001 - the top of a thread: what broke is logged, and the rest goes on
                logger.exception("Recent ticks cannot be kept, and are dropped")
            self._write_began_s = None

    def _take(self, heard: deque[Batch]) -> Iterator[Batch]:
        with suppress(IndexError):
            while True:
                batch = heard.popleft()
                self._taken += len(batch[1])
                yield batch


def _nothing() -> None:
    """There is nothing to write in the database."""


recorder = TickRecorder()


# The side of those who read. What was torn or damaged is left out.
class NotHere(Exception):
    """The engine writes its files elsewhere, or cannot write."""


class OpenFile:
    """The whole records of a file, as far as no later file has the same numbers: an engine that takes over
    repeats what the one before it may not have written."""

    def __init__(self, file: TickFile, descriptor: int) -> None:
        self.epoch, self.source, self._descriptor = file.epoch, file.source, descriptor
        self.number = os.fstat(descriptor).st_size // RECORD.size
        # A power cut may leave zeros.
        while self.number and self.at(self.number - 1) is None:
            self.number -= 1

    def at(self, index: int) -> KeptTick | None:
        bodies = b"".join(self._read(index, 1)) if index < self.number else b""
        return next(unpack_ticks(bodies), None)

    def place(self, index: int) -> TickPlace:
        seq, time_ms, *_ = self._raw(index)
        return TickPlace(self.epoch, seq, time_ms)

    def index_of_seq(self, seq: int) -> int:
        return bisect_left(range(self.number), seq, key=lambda index: self._raw(index)[0])

    def index_of_time(self, time_ms: int) -> int:
        return bisect_left(range(self.number), time_ms, key=lambda index: self._raw(index)[1])

    def bodies(self, start: int, stop: int) -> Iterator[memoryview]:
        for index in range(start, stop, AT_ONCE):
            yield from self._read(index, min(AT_ONCE, stop - index))

    def _read(self, index: int, number: int) -> Iterator[memoryview]:
        data = memoryview(os.pread(self._descriptor, number * RECORD.size, index * RECORD.size))
        for start in range(0, len(data), RECORD.size):
            body = data[start : start + BODY.size]
            if (zlib.crc32(body),) == SUM.unpack_from(data, start + BODY.size):
                yield body

    def _raw(self, index: int) -> tuple[int, int]:
        data = os.pread(self._descriptor, RECORD.size, index * RECORD.size)
        seq, time_ms, *_ = RECORD.unpack(data)
        return seq, time_ms


class RecentTicks:
    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, wanted: WantedTicks, epoch: str) -> FoundTicks:
        """Raises NotHere unless the engine that numbers in this epoch writes here."""
        try:
            is_here = (self._root / EPOCH_FILE).read_text() == epoch
        except FileNotFoundError:
            is_here = False
        if not is_here:
            raise NotHere
        with ExitStack() as opened:
            kept = self._opened(wanted.symbol, opened)
            files = [file for file in kept if wanted.may_be_given(file.source)]
            found = FoundTicks(
                oldest=files[0].place(0) if files else None,
                newest=kept[-1].place(kept[-1].number - 1) if kept else None,
            )
            return self._page(files, wanted, found)

    def _opened(self, symbol: str, opened: ExitStack) -> list[OpenFile]:
        files = []
        for file in files_in(folder_of(self._root, symbol)):
            # Retention may have removed it a moment ago.
            with suppress(FileNotFoundError):
                descriptor = os.open(file.path, os.O_RDONLY)
                opened.callback(os.close, descriptor)
                files.append(OpenFile(file, descriptor))
        begun: dict[str, int] = {}
        for each in reversed(files):
            if each.epoch in begun:
                each.number = each.index_of_seq(begun[each.epoch])
            if (first := each.at(0)) is not None:
                begun[each.epoch] = first.seq
        return [file for file in files if file.number]

    def _page(self, files: list[OpenFile], wanted: WantedTicks, found: FoundTicks) -> FoundTicks:
        after, start_ms = wanted.after, wanted.start_ms
        is_known = after is None or any(file.epoch == after.epoch for file in files)
        has_begun = after is None or not is_known
        if after is not None and not is_known:
            # Its epoch is gone, and all that is kept came after it.
            start_ms = max(start_ms, after.time_ms)
        bodies, epoch, most_bytes = bytearray(), "", wanted.limit * BODY.size
        for file in files:
            has_begun = has_begun or (after is not None and file.epoch == after.epoch)
            first = file.index_of_time(start_ms)
            if after is not None and file.epoch == after.epoch:
                first = max(first, file.index_of_seq(after.seq + 1))
            for body in file.bodies(first, file.index_of_time(wanted.end_ms)) if has_begun else ():
                if len(bodies) == most_bytes or (bodies and file.epoch != epoch):
                    return found._replace(epoch=epoch, bodies=bytes(bodies), has_more=True)
                bodies += body
                epoch = file.epoch
        return found._replace(epoch=epoch, bodies=bytes(bodies))
