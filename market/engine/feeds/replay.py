"""Files of ticks played as if they came now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from instruments.catalogue import InstrumentFacts
from market.clock import now_ms
from market.prices.ticks import Tick

from .feed import Inlet
from .replay_files import ReplayFiles

logger = logging.getLogger(__name__)

STEP_S = 0.05
BATCH = 1_000


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
        async with aclosing(ReplayFiles(self._directory, self._instruments).pieces(inlet, BATCH)) as pieces:
            played = await self._play(pieces, inlet)
        logger.info("The replay of %s has ended: %d ticks", self._directory, played)
        if played:
            inlet.lost("the replay has ended")

    async def _play(self, pieces: AsyncIterator[list[Tick]], inlet: Inlet) -> int:
        played, as_of_now = 0, None
        async for piece in pieces:
            played += len(piece)
            if self._speed <= 0:
                inlet.take(piece)
                continue
            as_of_now = as_of_now or _Pace(self._clock(), piece[0].time_ms, self._speed)
            await self._play_in_time([as_of_now.moved(tick) for tick in piece], inlet)
        return played

    async def _play_in_time(self, ticks: list[Tick], inlet: Inlet) -> None:
        due = list[Tick]()
        for tick in ticks:
            while tick.time_ms > self._clock():
                # Also where none is due: what is quiet is not lost.
                inlet.take(due)
                due = []
                await self._sleep(STEP_S)
            due.append(tick)
        inlet.take(due)


class _Pace:
    """The first tick is of now; the others follow in their distance, divided by the speed."""

    def __init__(self, began_ms: int, first_ms: int, speed: float) -> None:
        self._began_ms, self._first_ms, self._speed = began_ms, first_ms, speed

    def moved(self, tick: Tick) -> Tick:
        time_ms = self._began_ms + round((tick.time_ms - self._first_ms) / self._speed)
        return msgspec.structs.replace(tick, time_ms=time_ms)
