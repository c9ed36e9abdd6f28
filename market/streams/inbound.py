"""How much one socket may say. Pure; `now_ms` is any clock that never goes back."""

from __future__ import annotations

from collections import deque

from .refusals import Refused

MAX_BYTES = 16 * 1024
A_SECOND, BURST = 10, 20
MAX_INVALID, INVALID_WITHIN_MS = 10, 60_000
SPACING_MS = 1000 // A_SECOND


class Inbound:
    __slots__ = ("_free_ms", "_invalid_ms")

    def __init__(self) -> None:
        self._free_ms = 0
        """When all that was said would have been said at 10 messages a second."""
        self._invalid_ms: deque[int] = deque(maxlen=MAX_INVALID)

    def take(self, now_ms: int) -> None:
        """Count a message, or refuse it as one too many."""
        free_ms = max(self._free_ms, now_ms) + SPACING_MS
        if free_ms - now_ms > BURST * SPACING_MS:
            raise Refused("too_many_messages")
        self._free_ms = free_ms

    def is_last_straw(self, now_ms: int) -> bool:
        """Count an invalid message: whether it is the tenth within 60 seconds."""
        self._invalid_ms.append(now_ms)
        is_full = len(self._invalid_ms) == MAX_INVALID
        return is_full and now_ms - self._invalid_ms[0] < INVALID_WITHIN_MS
