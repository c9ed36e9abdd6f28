"""What a connection says while the minutes before it are still being asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from market.prices.ticks import Tick

from .feed import Inlet

# Between two handfuls the event loop does other things.
AT_ONCE = 500


class Held:
    """Stands before the engine until the past is filled. Candles only go forward: a tick that was let in, and
    even a sign of life, would close minutes whose history is on its way."""

    def __init__(self, inlet: Inlet, at_most: int, before: Sequence[Tick] = ()) -> None:
        """`before` is what another connection left behind."""
        self._inlet = inlet
        self._at_most = at_most
        self._ticks = list(before)
        self._was_heard = self._is_over = False
        self.is_full = False
        self.released = asyncio.Event()

    def take(self, ticks: list[Tick]) -> None:
        if self._is_over:
            self._inlet.take(ticks)
        else:
            self._was_heard = True
            self._ticks += ticks
            self.is_full = len(self._ticks) >= self._at_most

    async def release(self) -> None:
        """Hand on what came meanwhile, then everything as it comes."""
        if self._was_heard and not self._ticks:
            self._inlet.take([])
        while self._ticks:
            first, self._ticks = self._ticks[:AT_ONCE], self._ticks[AT_ONCE:]
            self._inlet.take(first)
            await asyncio.sleep(0)
        # No await since the last look: nothing came between.
        self._is_over, self.is_full = True, False
        self.released.set()

    def leave(self, awaited: Collection[str]) -> list[Tick]:
        """The connection is over: hand on what has no history to wait for, and return the rest."""
        ticks, self._ticks = self._ticks, []
        if free := [tick for tick in ticks if tick.symbol not in awaited]:
            self._inlet.take(free)
        return [tick for tick in ticks if tick.symbol in awaited]
