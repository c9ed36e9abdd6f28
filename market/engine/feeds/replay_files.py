"""The files of a replay, read in a thread: the event loop gets a piece at a time."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from operator import attrgetter
from pathlib import Path

from instruments.catalogue import InstrumentFacts
from market.engine.files.bi5 import usual_point
from market.engine.files.format import BadFile
from market.engine.files.tick_file import TickFile
from market.prices.ticks import Tick

from .feed import Inlet

# One for each symbol is held at a time. Small, because other threads wait while it is parsed.
BLOCK = 1 << 14


class ReplayFiles:
    """What lies in a folder for some instruments. Where a recording says nothing of one of them, all of it is
    read for the first tick."""

    def __init__(self, directory: Path, instruments: Sequence[InstrumentFacts]) -> None:
        self._directory = directory
        self._instruments = instruments
        self._is_over = threading.Event()
        """Nobody wants more: looked at between two blocks."""
        self._malformed = 0
        self._faults: list[str] = []

    async def pieces(self, inlet: Inlet, size: int) -> AsyncGenerator[list[Tick]]:
        """The ticks of all symbols in the order of time, so many at once; faults are told in between."""
        loop, ticks = asyncio.get_running_loop(), self._merged()
        # A thread of its own: a scan of gigabytes would keep one of the database's for minutes.
        reader = ThreadPoolExecutor(1, "replay")
        reading = loop.run_in_executor(reader, self._read, ticks, size)
        try:
            while True:
                piece, malformed, faults = await reading
                for fault in faults:
                    inlet.lost(fault)
                for _ in range(malformed):
                    inlet.refuse("malformed")
                if not piece:
                    return
                # The next is read while this one is played.
                reading = loop.run_in_executor(reader, self._read, ticks, size)
                yield piece
        finally:
            self._is_over.set()
            reading.cancel()
            # A file is closed where it was opened, after what is read now.
            reader.submit(ticks.close)
            reader.shutdown(wait=False)

    def _read(self, ticks: Iterator[Tick], size: int) -> tuple[list[Tick], int, list[str]]:
        """In the thread: a piece, how many lines made no tick, and what is wrong with files."""
        piece = list(islice(ticks, size))
        malformed, self._malformed = self._malformed, 0
        faults, self._faults = self._faults, []
        return piece, malformed, faults

    def _merged(self) -> Generator[Tick]:
        yield from heapq.merge(*map(self._ticks, self._instruments), key=attrgetter("time_ms"))

    def _ticks(self, facts: InstrumentFacts) -> Iterator[Tick]:
        """Whatever is wrong with one symbol's files, the others are played all the same."""
        try:
            for path in self._files_of(facts.symbol):
                with TickFile(str(path), block=BLOCK) as file:
                    for batch in file.batches(facts.symbol, usual_point(facts.digits)):
                        if self._is_over.is_set():
                            return
                        self._malformed += len(batch.malformed)
                        yield from batch.ticks
        except BadFile as error:
            self._faults.append(str(error))

    def _files_of(self, symbol: str) -> list[Path]:
        """Named after the symbol, or within a folder of its name; else recordings, which may be of many."""
        own = [*self._directory.glob(f"{symbol}.*"), *self._directory.glob(f"{symbol}/**/*")]
        found = own or [*self._directory.glob("recording*")]
        paths = sorted(path for path in found if path.is_file())
        if not paths:
            where = self._directory / f"{symbol}.*"
            raise BadFile(f"there is no {where} to replay: put a file of ticks there, or set REPLAY_DIR")
        return paths
