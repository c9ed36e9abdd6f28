"""How long a live feed waits for what."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Pace:
    open_s: float = 10.0
    close_s: float = 2.0
    silent_s: float = 15.0
    """Without any message for this long a connection is given up. Venues send heartbeats or are probed."""
    probe_s: float = 5.0
    """A WebSocket venue is asked for a sign of life when nothing else was said to it for this long."""
    say_gap_s: float = 0.25
    """Between two messages to a venue; Binance cuts off who sends more than five a second."""
    first_retry_s: float = 1.0
    longest_retry_s: float = 60.0
    steady_s: float = 30.0
    """A connection that held this long was a good one: the next begins with the shortest wait again."""
    history_s: float = 10.0
    history_at_once: int = 4
    held_at_most: int = 100_000
    """So many ticks may wait for the history; more are left with the venue meanwhile."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    def retry_s(self, failures: int) -> float:
        """Doubles up to the cap; shortened by up to a half, so that clients do not come back as one."""
        # No exponent beyond what a float can hold, however long the venue stays away.
        full_s = min(self.longest_retry_s, self.first_retry_s * 2.0 ** min(failures, 30))
        return full_s * (1.0 - self.chance() / 2)
