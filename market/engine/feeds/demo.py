"""The simulated market as a feed: the ticks of every open instrument, as time goes by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from operator import attrgetter

from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.ticks import Tick

from .profiles import profile_for
from .simulation import SimulatedMarket

STEP_S = 0.05
# After a longer pause (a laptop asleep) the feed goes on from here instead of making every tick it missed.
CATCH_UP_MS = 600_000


def simulated(facts: InstrumentFacts, seed: int) -> SimulatedMarket:
    profile = profile_for(facts.symbol, facts.digits, facts.pip_size, facts.type)
    return SimulatedMarket(seed, facts.symbol, facts.digits, profile, facts.volume_kind)


class DemoFeed:
    """Prices are a function of the time, so every process and every restart sees the same market."""

    def __init__(self, seed: int, since_ms: int, known_ms: Mapping[str, int]) -> None:
        """`known_ms` is the time of each symbol's last tick that was kept."""
        self._seed = seed
        self._since_ms = since_ms
        self._known_ms = known_ms
        self._markets: dict[str, SimulatedMarket] = {}

    async def batches(self) -> AsyncIterator[list[Tick]]:
        while True:
            now_ms = time.time_ns() // 1_000_000
            if now_ms > self._since_ms:
                since_ms = max(self._since_ms, now_ms - CATCH_UP_MS)
                self._since_ms = now_ms
                yield self._ticks_between(since_ms, now_ms)
            await asyncio.sleep(STEP_S)

    def _ticks_between(self, start_ms: int, end_ms: int) -> list[Tick]:
        ticks: list[Tick] = []
        for facts in catalogue.active():
            market = self._markets.get(facts.symbol)
            if market is None:
                market = self._markets[facts.symbol] = simulated(facts, self._seed)
            for opens_ms, closes_ms in facts.hours.sessions_between(start_ms, end_ms):
                unknown_ms = max(opens_ms, self._known_ms.get(facts.symbol, 0) + 1)
                ticks += market.ticks_between(unknown_ms, closes_ms)
        ticks.sort(key=attrgetter("time_ms"))
        return ticks
