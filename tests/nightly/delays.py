"""What a busy machine takes from a test that holds something to a promised time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

LOOK_S = 0.02


class LoopDelays:
    """How late this loop was. What takes several of its turns is later by the sum of their delays at most."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.total_s = self.longest_s = 0.0
        self._look_after(LOOK_S)

    def stop(self) -> None:
        self._timer.cancel()

    def _look_after(self, seconds: float) -> None:
        self._due_s = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._due_s, self._look)

    def _look(self) -> None:
        late_s = self._loop.time() - self._due_s
        self.total_s += late_s
        self.longest_s = max(self.longest_s, late_s)
        self._look_after(LOOK_S)


@contextmanager
def noted_delays() -> Iterator[LoopDelays]:
    delays = LoopDelays()
    try:
        yield delays
    finally:
        delays.stop()
