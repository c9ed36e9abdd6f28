"""Files of ticks played as if they came now."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from operator import attrgetter
from pathlib import Path

import msgspec

from market.engine.files.format import BadFile
from market.engine.files.tick_file import TickFile
from market.prices.ticks import Tick

from .feed import Inlet

logger = logging.getLogger(__name__)

STEP_S = 0.05
# Small, because it is parsed on the event loop: less than a millisecond at a time.
BLOCK = 1 << 14
BATCH = 1_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class ReplayFeed:
    """The first tick is of now, and gaps keep their length, divided by the speed. At speed 0 all comes at
    once with the times it had: the past as the past, for making candles of it."""

    def __init__(
        self,
        directory: Path,
        symbols: Sequence[str],
        speed: float,
        clock: Callable[[], int] = now_ms,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._directory = directory
        self._symbols = symbols
        self._speed = speed
        self._clock = clock
        self._sleep = sleep

    async def run(self, inlet: Inlet) -> None:
        with ExitStack() as opened:
            try:
                played = await self._play(self._merged(inlet, opened), inlet)
            except BadFile as error:
                inlet.lost(str(error))
                return
        logger.info("The replay of %s has ended: %d ticks", ", ".join(self._symbols), played)
        inlet.lost("the replay has ended")

    async def _play(self, ticks: Iterator[Tick], inlet: Inlet) -> int:
        played, due = 0, list[Tick]()
        for tick in self._of_now(ticks):
            while self._speed > 0 and tick.time_ms > self._clock():
                # Also where none is due: what is quiet is not lost.
                inlet.take(due)
                due = []
                await self._sleep(STEP_S)
            due.append(tick)
            played += 1
            if len(due) == BATCH:
                inlet.take(due)
                due = []
                await self._sleep(0)
        inlet.take(due)
        return played

    def _of_now(self, ticks: Iterator[Tick]) -> Iterator[Tick]:
        first = next(ticks, None)
        if first is None or self._speed <= 0:
            yield from filter(None, chain([first], ticks))
            return
        began_ms = self._clock()
        for tick in chain([first], ticks):
            time_ms = began_ms + round((tick.time_ms - first.time_ms) / self._speed)
            yield msgspec.structs.replace(tick, time_ms=time_ms)

    def _merged(self, inlet: Inlet, opened: ExitStack) -> Iterator[Tick]:
        """The ticks of all files in the order of time."""
        files = [
            self._ticks(symbol, opened.enter_context(TickFile(str(path), block=BLOCK)), inlet)
            for symbol in self._symbols
            for path in self._files_of(symbol, inlet)
        ]
        return heapq.merge(*files, key=attrgetter("time_ms"))

    def _files_of(self, symbol: str, inlet: Inlet) -> list[Path]:
        where = self._directory / f"{symbol}.*"
        paths = sorted(self._directory.glob(where.name))
        if not paths:
            # The others are played all the same.
            inlet.lost(f"there is no {where} to replay: put a file of ticks there, or set REPLAY_DIR")
        return paths

    def _ticks(self, symbol: str, file: TickFile, inlet: Inlet) -> Iterator[Tick]:
        for batch in file.batches(symbol, point=0.00001):
            for _ in batch.malformed:
                inlet.refuse("malformed")
            yield from batch.ticks
