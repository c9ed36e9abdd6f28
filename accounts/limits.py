"""The exact sliding window: no 60 seconds ever hold more than N admitted requests of an account."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

WINDOW_S = 60.0


class Standing(msgspec.Struct, frozen=True):
    """Where an account stands in its window after a request, or after a look."""

    admitted: bool
    limit: int
    used: int
    frees_in: float
    """Seconds until the next slot frees; 0 when none is taken."""

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def wait_s(self) -> int:
        """Whole seconds, rounded up: waiting that long succeeds."""
        return math.ceil(self.frees_in)


class Window(Protocol):
    async def admit(self, key: str, limit: int) -> Standing: ...

    async def look(self, key: str, limit: int) -> Standing: ...


class MemoryWindow:
    """For one process. Counts on a monotonic clock, so a stepped wall clock locks nobody out."""

    # Above this many keys, those whose window has run empty are dropped.
    SWEEP_ABOVE = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._admitted: dict[str, deque[float]] = {}

    async def admit(self, key: str, limit: int) -> Standing:
        return self.count(key, limit, cost=1)

    async def look(self, key: str, limit: int) -> Standing:
        return self.count(key, limit, cost=0)

    def count(self, key: str, limit: int, cost: int) -> Standing:
        now = self._clock()
        stamps = self._admitted.get(key)
        if stamps is None:
            self._sweep(now)
            stamps = self._admitted[key] = deque()
        while stamps and stamps[0] <= now - WINDOW_S:
            stamps.popleft()
        admitted = len(stamps) < limit
        if admitted and cost:
            stamps.append(now)
        return self._standing(stamps, admitted, limit, now)

    @staticmethod
    def _standing(stamps: deque[float], admitted: bool, limit: int, now: float) -> Standing:
        used = len(stamps)
        if not used:
            return Standing(admitted, limit, 0, 0.0)
        # A lowered limit can leave more than N in the window: a slot frees when enough of them are gone.
        leaver = stamps[max(0, used - limit)]
        return Standing(admitted, limit, used, leaver + WINDOW_S - now)

    def _sweep(self, now: float) -> None:
        if len(self._admitted) < self.SWEEP_ABOVE:
            return
        for key in [
            key for key, stamps in self._admitted.items() if not stamps or stamps[-1] <= now - WINDOW_S
        ]:
            del self._admitted[key]
