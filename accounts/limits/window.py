"""The exact sliding window: no 60 seconds ever hold more than N admitted requests of an account."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

import msgspec

WINDOW_S = 60

# Whole nanoseconds: with floats a slot could free a rounding error after the second that was promised.
WINDOW_NS = WINDOW_S * 1_000_000_000


def rate_headers(tier: str, limit: object, left: object, reset: object, wait_s: object) -> dict[str, str]:
    """Today's usual names, and the IETF draft's."""
    return {
        "X-RateLimit-Limit": f"{limit}",
        "X-RateLimit-Remaining": f"{left}",
        "X-RateLimit-Reset": f"{reset}",
        "RateLimit-Policy": f'"{tier}";q={limit};w={WINDOW_S}',
        "RateLimit": f'"{tier}";r={left};t={wait_s}',
    }


class Standing(msgspec.Struct, frozen=True):
    """Where an account stands in its window after a request, or after a look."""

    admitted: bool
    limit: int
    used: int
    frees_in: float
    """Seconds until the next slot frees; 0 when none is taken."""

    @property
    def remaining(self) -> int:
        return self.figures()[0]

    @property
    def wait_s(self) -> int:
        """Whole seconds, rounded up: waiting that long succeeds."""
        return self.figures()[2]

    @property
    def reset(self) -> int:
        """The epoch second in which the next slot frees."""
        return self.figures()[1]

    def figures(self) -> tuple[int, int, int]:
        """`remaining`, `reset` and `wait_s`."""
        left, frees_in = self.limit - self.used, self.frees_in
        return left if left > 0 else 0, math.ceil(time.time() + frees_in), math.ceil(frees_in)

    def headers(self, tier: str) -> dict[str, str]:
        """Sent with every answer to an authenticated caller."""
        left, reset, wait_s = self.figures()
        return rate_headers(tier, self.limit, left, reset, wait_s)


Then = Callable[[Standing], object]


class MemoryWindow:
    """Counts in one process, on a monotonic clock, so that a step of the wall clock locks no client out."""

    # Above this many keys, those whose window has run empty are dropped.
    SWEEP_ABOVE = 10_000

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.clock_ns = clock_ns
        self.admitted: dict[str, deque[int]] = {}
        """When requests were admitted, by key, oldest first."""
        self.sweep_above = self.SWEEP_ABOVE

    async def ask(self, key: str, limit: int, cost: int) -> Standing:
        return self.count(key, limit, cost)

    def admit_now(self, key: str, limit: int) -> Standing | None:
        """None where this process alone does not know."""
        return self.count(key, limit, 1)

    def admit_later(self, key: str, limit: int, then: Then) -> None:
        """Calls it from the loop, as soon as the standing is known."""
        asyncio.get_running_loop().call_soon(then, self.count(key, limit, 1))

    async def close(self) -> None:
        self.admitted.clear()

    def count(self, key: str, limit: int, cost: int) -> Standing:
        """Count a request, of cost 1, or only look, at cost 0."""
        now = self.clock_ns()
        stamps = self.admitted.get(key)
        if not stamps or stamps[0] <= now - WINDOW_NS:
            stamps = self._of_last_minute(key, now)
        used = len(stamps)
        admitted = used < limit
        if admitted and cost:
            stamps.append(now)
            used += 1
        # A lowered limit can leave more than N in the window: a slot frees when enough of them are gone.
        oldest = used - limit if used > limit else 0
        frees_in = (stamps[oldest] + WINDOW_NS - now) / 1e9 if used else 0.0
        return Standing(admitted, limit, used, frees_in)

    def note(self, key: str, limit: int, count: int = 1) -> None:
        """Count what was admitted elsewhere, up to `limit`."""
        now = self.clock_ns()
        stamps = self._of_last_minute(key, now)
        stamps.extend([now] * count)
        while len(stamps) > limit:
            stamps.popleft()

    def _of_last_minute(self, key: str, now: int) -> deque[int]:
        stamps = self.admitted.get(key)
        if stamps is None:
            self._sweep(now)
            stamps = self.admitted[key] = deque()
        while stamps and stamps[0] <= now - WINDOW_NS:
            stamps.popleft()
        return stamps

    def _sweep(self, now: int) -> None:
        if len(self.admitted) < self.sweep_above:
            return
        empty = [key for key, stamps in self.admitted.items() if not stamps or stamps[-1] <= now - WINDOW_NS]
        for key in empty:
            del self.admitted[key]
        # If most keys are in use the next sweep waits, or each new key would cause one.
        self.sweep_above = max(self.SWEEP_ABOVE, 2 * len(self.admitted))
