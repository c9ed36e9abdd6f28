"""Time that passes for a loop at once: minutes, in which a machine stood still or nothing came."""

from __future__ import annotations

import asyncio


class LoopTime:
    """Of the loop that runs."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._real, self.passed_s = loop.time, 0.0
        loop.time = self._time  # type: ignore[method-assign]

    def _time(self) -> float:
        return self._real() + self.passed_s
