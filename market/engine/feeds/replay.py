"""Files of ticks played as if they came now."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import chain
from operator import attrgetter
from pathlib import Path

import msgspec

from instruments.catalogue import InstrumentFacts
from market.engine.files.bi5 import usual_point
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
    """The first tick is of now, and gaps keep their length, divided by the speed: to the engine's door the
    ticks are as live as any, and a market that is closed now refuses them.

    At speed 0 all comes at once with the times it had. The door takes that only where nothing later is
    known: a replay into an empty database makes the candles of the past, a second one is refused as old."""

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

    async def run(self, inlet: Inlet) -> None:
        with closing(self._merged(inlet)) as ticks:
            played = await self._play(ticks, inlet)
        logger.info("The replay of %s has ended: %d ticks", self._directory, played)
        if played:
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

    def _merged(self, inlet: Inlet) -> Generator[Tick]:
        """The ticks of all symbols in the order of time."""
        streams = [self._ticks(facts, inlet) for facts in self._instruments]
        yield from heapq.merge(*streams, key=attrgetter("time_ms"))

    def _ticks(self, facts: InstrumentFacts, inlet: Inlet) -> Iterator[Tick]:
        """Whatever is wrong with one symbol's files, the others are played all the same."""
        try:
            for path in self._files_of(facts.symbol):
                with TickFile(str(path), block=BLOCK) as file:
                    for batch in file.batches(facts.symbol, usual_point(facts.digits)):
                        for _ in batch.malformed:
                            inlet.refuse("malformed")
                        yield from batch.ticks
        except BadFile as error:
            inlet.lost(str(error))

    def _files_of(self, symbol: str) -> list[Path]:
        """Named after the symbol, or within a folder of its name; else recordings, which may be of many."""
        own = [*self._directory.glob(f"{symbol}.*"), *self._directory.glob(f"{symbol}/**/*")]
        found = own or [*self._directory.glob("recording*")]
        paths = sorted(path for path in found if path.is_file())
        if not paths:
            where = self._directory / f"{symbol}.*"
            raise BadFile(f"there is no {where} to replay: put a file of ticks there, or set REPLAY_DIR")
        return paths
