"""Stops asking what does not answer. Moments are seconds of a clock that never goes back."""

from __future__ import annotations

FAILURES_THAT_OPEN = 3
FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 900.0


class Breaker:
    """Closed while all is well; open for a while after faults; then one may try."""

    def __init__(self) -> None:
        self._failures = 0
        self._wait_s = FIRST_WAIT_S
        self._open_until: float | None = None

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def wait_s(self, now: float) -> float:
        """Until one may try."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def admit(self, now: float) -> bool:
        if self._open_until is None:
            return True
        if now < self._open_until:
            return False
        # Who comes next waits for what becomes of this one, which may never be heard of again.
        self._open_until = now + self._wait_s
        return True

    def succeed(self) -> None:
        self._failures = 0
        self._wait_s = FIRST_WAIT_S
        self._open_until = None

    def fail(self, now: float, *, wait_s: float = 0.0, is_lasting: bool = False) -> None:
        """After a few in a row, after one that asks for patience, and after one that would come again."""
        self._failures += 1
        if self._failures < FAILURES_THAT_OPEN and not wait_s and not is_lasting and self.is_closed:
            return
        wait_s = min(wait_s or self._wait_s, LONGEST_WAIT_S)
        self._open_until = now + wait_s
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)
