"""How a test waits for what must come to pass. Only one that fails ever waits for PATIENCE_S, so it is longer
than the slowest machine needs: beside other work, at `nice`, a process gets a twentieth of a core."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

PATIENCE_S = 300.0
# What does a minute's work on an idle core before it answers.
START_PATIENCE_S = 1800.0
FIRST_LOOK_S, RARE_LOOK_S = 0.002, 0.05


def wait_until(is_so: Callable[[], object], within_s: float = PATIENCE_S) -> float:
    """For what nobody tells. Returns how many seconds it took."""
    began_s = time.perf_counter()
    pauses = _pauses()
    while not is_so():
        assert time.perf_counter() - began_s < within_s, "it did not come to pass"
        time.sleep(next(pauses))
    return time.perf_counter() - began_s


async def until(is_so: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """The same, while the loop goes on."""
    pauses = _pauses()
    async with asyncio.timeout(within_s):
        while not is_so():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(next(pauses))


def _pauses() -> Iterator[float]:
    """Looking costs what is looked at: more and more rarely."""
    pause_s = FIRST_LOOK_S
    while True:
        yield pause_s
        pause_s = min(1.5 * pause_s, RARE_LOOK_S)
