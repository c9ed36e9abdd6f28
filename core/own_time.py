"""Time as this process lived it: while the machine stands still, nobody else is late."""

import asyncio
from typing import Any

SLICES = 8


class OwnTime:
    """Follows a clock that is read often. What a step has beyond the longest was a standstill."""

    def __init__(self, clock: float, longest_step_s: float) -> None:
        self._clock, self._longest_step_s, self.now = clock, longest_step_s, 0.0

    def pass_to(self, clock: float) -> float:
        self.now += min(clock - self._clock, self._longest_step_s)
        self._clock = clock
        return self.now


async def is_done_within(asked: asyncio.Future[Any], seconds: float) -> bool:
    """Waits in slices, so that a standstill, however long, uses up only one of them."""
    for _ in range(SLICES):
        if (await asyncio.wait((asked,), timeout=seconds / SLICES))[0]:
            return True
    return False
