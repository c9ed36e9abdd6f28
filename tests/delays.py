"""What a busy machine takes from a test that holds something to a promised time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

LOOK_S = 0.02


class LoopDelays:
    """How late this loop was with all its turns together. What goes on in it is later by as much at most."""

    def __init__(self) -> None:
        self._loop, self._late_s = asyncio.get_running_loop(), 0.0
        self._look_after(LOOK_S)

    @property
    def total_s(self) -> float:
        return self._late_s + max(0.0, self._loop.time() - self._due_s)

    def stop(self) -> None:
        self._timer.cancel()

    def _look_after(self, seconds: float) -> None:
        self._due_s = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._due_s, self._look)

    def _look(self) -> None:
        self._late_s = self.total_s
        self._look_after(LOOK_S)


@contextmanager
def noted_delays() -> Iterator[LoopDelays]:
    delays = LoopDelays()
    try:
        yield delays
    finally:
        delays.stop()
