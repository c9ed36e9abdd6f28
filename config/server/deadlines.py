"""How long a connection may take for what, without a timer for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

# From connecting, or from the first byte of a later head.
HEAD_S = 10.0
# Between requests: more than bots wait that ask every minute.
IDLE_S = 75.0
# To read an answer and close, once this end has closed.
LEAVE_S = 5.0
# A body of 64 KiB ends within 26 s; so does an answer that fills the kernel's buffers.
GRACE_S, BYTES_A_SECOND = 10.0, 4 * 1024

C = TypeVar("C")


class Deadline(Generic[C]):
    """Of many connections and the same for all: they come due in the order in which they were started."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[C, float] = {}

    def start(self, connection: C, now: float) -> None:
        self._ends.pop(connection, None)
        self._ends[connection] = now + self._seconds

    def stop(self, connection: C) -> None:
        self._ends.pop(connection, None)

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, connection: C) -> bool:
        return connection in self._ends

    def due(self, now: float) -> Iterator[C]:
        while self._ends:
            connection, ends_at = next(iter(self._ends.items()))
            if ends_at > now:
                return
            del self._ends[connection]
            yield connection


class Pace:
    """Whether something moves fast enough: a grace first, then so many bytes a second."""

    __slots__ = ("_moved", "_since")

    def __init__(self, now: float) -> None:
        self._since, self._moved = now, 0

    def moved(self, total: int) -> None:
        """So much in all, since it began."""
        self._moved = total

    def pause(self, seconds: float) -> None:
        """That it did not move was not the other end's fault."""
        self._since += seconds

    def is_too_slow(self, now: float, grace_s: float = GRACE_S) -> bool:
        return now - self._since > grace_s + self._moved / BYTES_A_SECOND
