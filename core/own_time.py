"""Time in which this process ran: nobody is to blame for a machine that stood still meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

SLICES = 8


class OwnTime:
    """Goes on with a clock that is looked at often: what a step has beyond the longest was a standstill."""

    def __init__(self, clock: float, longest_step_s: float) -> None:
        self._clock, self._longest_step_s, self.now = clock, longest_step_s, 0.0

    def pass_to(self, clock: float) -> float:
        self.now += min(clock - self._clock, self._longest_step_s)
        self._clock = clock
        return self.now


async def is_done_within(asked: asyncio.Future[Any], seconds: float) -> bool:
    """A standstill ends one slice of the time, however long it was, and leaves the answer the others."""
    for _ in range(SLICES):
        if (await asyncio.wait((asked,), timeout=seconds / SLICES))[0]:
            return True
    return False
