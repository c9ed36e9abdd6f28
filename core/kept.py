"""What is dear to find out, and may be a few seconds old."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Made once in so many seconds, however many ask. While it is made again, the others get the last one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.last: T | None = None
        self.made_at = float("-inf")

    def get(self, fresh_s: float, make: Callable[[T | None], T]) -> T:
        """`make` is given the last one."""
        if (last := self._fresh(fresh_s)) is not None:
            return last
        if not self._lock.acquire(blocking=self.last is None) and self.last is not None:
            return self.last
        try:
            # It may have been made while this one waited.
            if (made := self._fresh(fresh_s)) is None:
                made = self.last = make(self.last)
                self.made_at = time.monotonic()
            return made
        finally:
            self._lock.release()

    def _fresh(self, fresh_s: float) -> T | None:
        return self.last if time.monotonic() - self.made_at <= fresh_s else None
