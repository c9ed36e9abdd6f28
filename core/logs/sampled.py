"""Log lines that strangers can cause: the first ones at once and whole, then so many a second, and of the
others how many there were."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

TELL_REST_EVERY_S = 10.0

# Who has not been seen for long is forgotten first; then the bound of the kind alone holds.
MOST_CALLERS = 2_000


class Rate(NamedTuple):
    burst: float
    a_second: float


class Bucket:
    __slots__ = ("_at_s", "_left")

    def __init__(self, rate: Rate, now_s: float) -> None:
        self._left, self._at_s = rate.burst, now_s

    def take(self, rate: Rate, now_s: float) -> bool:
        self._left = min(rate.burst, self._left + (now_s - self._at_s) * rate.a_second)
        self._at_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


class SampledLog:
    """For any thread. Nothing is written while the lock is held."""

    def __init__(
        self,
        logger: logging.Logger,
        level: int,
        of_caller: Rate,
        of_kind: Rate,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logger, self.level = logger, level
        self._of_caller, self._of_kind, self._clock = of_caller, of_kind, clock
        self._lock = Lock()
        self.forget()

    def forget(self) -> None:
        self._callers: dict[tuple[str, str], Bucket] = {}
        self._kinds: dict[str, Bucket] = {}
        self._untold: dict[str, int] = {}
        self._untold_since_s = 0.0

    def tell(self, kind: str, caller: str, text: str, **fields: object) -> None:
        """`kind` is one of a few words, `caller` an account or an address."""
        if not self.logger.isEnabledFor(self.level):
            return
        with self._lock:
            now_s = self._clock()
            is_due = self._untold and now_s - self._untold_since_s >= TELL_REST_EVERY_S
            rest = self._take_rest() if is_due else {}
            is_told = self._may_tell(kind, caller, now_s)
            if not is_told:
                self._note_untold(kind, now_s)
        self._write_rest(rest)
        if is_told:
            self.logger.log(self.level, text, extra=fields)

    def _may_tell(self, kind: str, caller: str, now_s: float) -> bool:
        bucket = self._callers.pop((kind, caller), None) or Bucket(self._of_caller, now_s)
        self._callers[kind, caller] = bucket
        if len(self._callers) > MOST_CALLERS:
            del self._callers[next(iter(self._callers))]
        if not bucket.take(self._of_caller, now_s):
            return False
        kinds = self._kinds.get(kind)
        if kinds is None:
            kinds = self._kinds[kind] = Bucket(self._of_kind, now_s)
        return kinds.take(self._of_kind, now_s)

    def _note_untold(self, kind: str, now_s: float) -> None:
        if not self._untold:
            self._untold_since_s = now_s
            with suppress(RuntimeError):
                # Else the last of a flood would be told only when the next one comes.
                asyncio.get_running_loop().call_later(TELL_REST_EVERY_S, self.tell_rest)
        self._untold[kind] = self._untold.get(kind, 0) + 1

    def tell_rest(self) -> None:
        with self._lock:
            rest = self._take_rest()
        self._write_rest(rest)

    def _take_rest(self) -> dict[str, int]:
        rest, self._untold = self._untold, {}
        return rest

    def _write_rest(self, rest: dict[str, int]) -> None:
        for kind, count in rest.items():
            extra = {"kind": kind, "count": count}
            self.logger.log(self.level, "%d more of %s were not logged one by one", count, kind, extra=extra)
