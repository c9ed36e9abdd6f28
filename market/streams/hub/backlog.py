"""Frames that wait for a client because it reads too slowly, or because it is sent what it missed."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Protocol

from serving.websocket.connection import count, frame

MOST_BYTES, MOST_FRAMES, STUCK_AFTER_S = 1024 * 1024, 2_000, 5.0

# How much is written at once: whatever the kernel does not take would only be copied.
PORTION_BYTES = 64 * 1024


class Publication(Protocol):
    @property
    def frame(self) -> bytes:
        """The text of a frame, for those who asked for no variant."""

    def payload(self, variant: int) -> bytes:
        """The text of a frame, for those who asked for this variant."""


class ReplaceablePublication(Publication, Protocol):
    """It can replace the earlier ones of its topic, for clients that asked for that."""

    def over(self, older: ReplaceablePublication) -> ReplaceablePublication:
        """This one, with what must be kept of an older one that is left out."""

    def notice(self, dropped: int) -> bytes:
        """The text that says how many were left out."""


class Backlog:
    """Frames in their order, none skipped, up to a bound."""

    def __init__(self, now: float, waiting: int) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = self._number = 0
        self._waiting, self._moved_at = waiting, now

    def put(self, frames: bytes) -> None:
        self._frames.append(frames)
        self._bytes += len(frames)
        self._number += count(frames)

    def take(self) -> bytes:
        """The next portion; empty if nothing waits."""
        taken: list[bytes] = []
        size = 0
        while self._frames and size < PORTION_BYTES:
            frames = self._frames.popleft()
            taken.append(frames)
            size += len(frames)
            self._number -= count(frames)
        self._bytes -= size
        return b"".join(taken)

    def moved(self, now: float, waiting: int) -> None:
        self._waiting, self._moved_at = waiting, now

    def is_too_long(self, waiting: int) -> bool:
        """`waiting` is what the connection itself still holds."""
        return self._number > MOST_FRAMES or self._bytes + waiting > MOST_BYTES

    def is_stuck(self, now: float, waiting: int, after_s: float = STUCK_AFTER_S) -> bool:
        if waiting < self._waiting:
            self._moved_at = now
        self._waiting = waiting
        return now - self._moved_at >= after_s


class LatestBacklog(Backlog):
    """Keeps the newest message of each topic. Replies are all kept, and go first."""

    def __init__(self, now: float, waiting: int) -> None:
        super().__init__(now, waiting)
        self._newest: dict[str, tuple[ReplaceablePublication, int, int]] = {}

    def fold(self, topic: str, message: ReplaceablePublication, variant: int) -> None:
        dropped = 0
        if topic in self._newest:
            older, _, dropped = self._newest[topic]
            message, dropped = message.over(older), dropped + 1
        self._newest[topic] = message, variant, dropped

    def forget(self, topics: Collection[str]) -> None:
        for topic in topics:
            self._newest.pop(topic, None)

    def line_up(self) -> None:
        """What waits now goes out before anything newer, and is not replaced by it."""
        while newest := self._pop_newest():
            self.put(newest)

    def take(self) -> bytes:
        return super().take() or self._pop_newest()

    def _pop_newest(self) -> bytes:
        if not self._newest:
            return b""
        message, variant, dropped = self._newest.pop(next(iter(self._newest)))
        notice = frame(message.notice(dropped)) if dropped else b""
        return notice + frame(message.payload(variant))


class Replay(Backlog):
    """Goes out as the client reads, before what is published meanwhile. Only the latter is bounded, but the
    client has to keep reading."""

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

    def forget(self, topics: Collection[str]) -> None:
        super().forget(topics)
        if isinstance(self._older, LatestBacklog):
            self._older.forget(topics)
