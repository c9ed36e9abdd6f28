"""Files of ticks played as if they came now; they are read in a thread."""

import asyncio
import heapq
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from itertools import islice
from operator import attrgetter
from pathlib import Path

import msgspec

from core.clock import now_ms
from instruments.facts import InstrumentFacts
from market.engine.files.format import BASIS, BadFile, usual_point
from market.engine.files.tick_file import TickFile
from market.prices.records import Tick

from .feed import FeedReceiver

logger = logging.getLogger(__name__)
STEP_S = 0.05
BATCH = 1_000


class ReplayFeed:
    """The first tick is as of now, and gaps keep their length, divided by the speed: the engine takes the
    ticks for live ones, and refuses them while the market is closed.

    At speed 0 they come all at once, with the times they had. The engine takes them only if it knows nothing
    later: a replay into an empty database makes the candles of the past, and a second one is refused."""

    def __init__(
        self,
        directory: Path,
        instruments: Sequence[InstrumentFacts],
        speed: float,
        clock: Callable[[], int] = now_ms,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._directory = directory
        self._instruments = instruments
        self._speed = speed
        self._clock = clock
        self._sleep = sleep

    async def run(self, receiver: FeedReceiver) -> None:
        files = ReplayFiles(self._directory, self._instruments)
        async with aclosing(files.pieces(receiver, BATCH)) as pieces:
            played = await self._play(pieces, receiver)
        logger.info("The replay of %s has ended: %d ticks", self._directory, played)
        if played:
            receiver.lost("the replay has ended")

    async def _play(self, pieces: AsyncIterator[list[Tick]], receiver: FeedReceiver) -> int:
        played, first_ms, began_ms = 0, None, self._clock()
        async for piece in pieces:
            played += len(piece)
            if self._speed <= 0:
                receiver.take(piece)
                continue
            if first_ms is None:
                first_ms, began_ms = piece[0].time_ms, self._clock()
            moved = [
                msgspec.structs.replace(
                    tick, time_ms=began_ms + round((tick.time_ms - first_ms) / self._speed)
                )
                for tick in piece
            ]
            await self._play_in_time(moved, receiver)
        return played

    async def _play_in_time(self, ticks: list[Tick], receiver: FeedReceiver) -> None:
        due = list[Tick]()
        for tick in ticks:
            while tick.time_ms > self._clock():
                # Also without a due tick: a quiet symbol is not lost.
                receiver.take(due)
                due = []
                await self._sleep(STEP_S)
            due.append(tick)
        receiver.take(due)


# One for each symbol is held at a time. Small, because other threads wait while it is parsed.
BLOCK = 1 << 14


class ReplayFiles:
    """The recordings in a folder for some instruments. If a recording lacks one of them, all of it is read
    before the first tick."""

    def __init__(self, directory: Path, instruments: Sequence[InstrumentFacts]) -> None:
        self._directory = directory
        self._instruments = instruments
        self._is_over = threading.Event()
        """The reading thread checks it between two blocks."""
        self._malformed = 0
        self._faults: list[str] = []

    async def pieces(self, receiver: FeedReceiver, size: int) -> AsyncGenerator[list[Tick]]:
        """The ticks of all symbols by time, `size` at once, with faults reported in between."""
        loop, ticks = asyncio.get_running_loop(), self._merged()
        # A thread of its own: a scan of gigabytes would keep one of the database's for minutes.
        reader = ThreadPoolExecutor(1, "replay")
        reading = loop.run_in_executor(reader, self._read, ticks, size)
        try:
            while True:
                piece, malformed, faults = await reading
                for fault in faults:
                    receiver.lost(fault)
                for _ in range(malformed):
                    receiver.refuse("malformed")
                if not piece:
                    return
                # The next is read while this one is played.
                reading = loop.run_in_executor(reader, self._read, ticks, size)
                yield piece
        finally:
            self._is_over.set()
            reading.cancel()
            # The thread that opened a file closes it, after the present read.
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
                    if file.format.basis == BASIS:
                        raise BadFile(f"{path} holds bars, which cannot be played: import them instead.")
                    point = usual_point(str(path), facts.symbol, facts.digits)
                    for batch in file.batches(facts.symbol, point):
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
