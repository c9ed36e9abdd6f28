"""What one client is due at once after it was away: it may be more than a slow reader may let wait."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from .backlog import PORTION_BYTES, Backlog, LatestBacklog
from .hub import Hub
from .seat import Seat

# So many are written with the reply and need no queue.
FEW = 64


class Replay(Backlog):
    """Goes out portion by portion, as the client reads, before what is published meanwhile: only that is
    bounded, and the client still has to read on."""

    def __init__(self, now: float, waiting: int, older: Backlog | None, frames: Iterator[bytes]) -> None:
        super().__init__(now, waiting)
        self._older, self._replayed = older, frames

    def take(self) -> bytes:
        if self._older is not None:
            if portion := self._older.take():
                return portion
            self._older = None
        taken: list[bytes] = []
        size = 0
        while size < PORTION_BYTES and (frames := next(self._replayed, b"")):
            taken.append(frames)
            size += len(frames)
        return b"".join(taken) or super().take()


class LatestReplay(Replay, LatestBacklog):
    """The same for a client that, when slow, wants only the newest of what is published meanwhile."""

    def forget(self, topics: set[str]) -> None:
        super().forget(topics)
        if isinstance(self._older, LatestBacklog):
            self._older.forget(topics)


def replay(hub: Hub, seat: Seat, frames: Iterator[bytes]) -> None:
    """Before all that is published from now on."""
    first = list(islice(frames, FEW))
    seat.send(b"".join(first))
    if len(first) < FEW or not seat.is_open:
        return
    if isinstance(seat.backlog, Replay):
        # Who asks for more before it has read what it asked for would fill the memory.
        hub.slow.give_up(seat)
        return
    if seat.backlog is None:
        hub.slow.hold(seat)
    older, make = seat.backlog, LatestReplay if seat.is_conflating else Replay
    backlog = seat.backlog = make(hub.loop.time(), seat.connection.waiting, older, frames)
    if isinstance(backlog, LatestBacklog):
        hub.slow.conflating[seat] = backlog
    if not seat.is_paused:
        seat.resumed()
