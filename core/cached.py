"""Values that are expensive to make and may be a few seconds old."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from core.contract.errors import Overloaded

T = TypeVar("T")
_of_thread = threading.local()


@contextmanager
def shared_work() -> Iterator[None]:
    """The thread's work within it counts for no client. Use it only where caching bounds the work."""
    began_s = time.thread_time()
    try:
        yield
    finally:
        _of_thread.for_all_s = shared_work_s() + time.thread_time() - began_s


def shared_work_s() -> float:
    """For how long this thread has worked for all clients together."""
    worked_s: float = getattr(_of_thread, "for_all_s", 0.0)
    return worked_s


# An older value is not used, however long a new one takes.
OLD_S = 60.0


class Cached(Generic[T]):
    """Made at most once in `fresh_s` seconds, however many callers ask. While one makes it again, the others
    get the last one, unless that is old."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.last: T | None = None
        self.made_at = float("-inf")

    def get(self, fresh_s: float, make: Callable[[T | None], T], patience_s: float = -1) -> T:
        """`make` is given the last one. Raises Overloaded if there is none to be given, and another makes one
        for longer than this; below 0 there is no limit."""
        if (last := self._since(fresh_s)) is not None:
            return last
        last = self._since(max(fresh_s, OLD_S))
        if not self._lock.acquire(timeout=patience_s if last is None else 0):
            if last is None:
                raise Overloaded(retry_after=2)
            return last
        try:
            # It may have been made while this one waited.
            if (made := self._since(fresh_s)) is None:
                made = self.last = make(self.last)
                self.made_at = time.monotonic()
            return made
        finally:
            self._lock.release()

    def _since(self, age_s: float) -> T | None:
        return self.last if time.monotonic() - self.made_at <= age_s else None
