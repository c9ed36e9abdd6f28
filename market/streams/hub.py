"""Topic → connections, in this process. It knows nothing of prices and nothing of sockets.

What is published in one turn of the loop leaves in one write for each connection. Nothing here waits, and no
recipient has a task or an encoding of its own: 500 recipients are 500 calls of the kernel's `send`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Protocol, cast

from .backlog import Latest, Message
from .connection import Connection
from .delivery import Owed, Rest, Round, send_to_all, write_each
from .framing import frame
from .groups import Audience, Group
from .members import Members
from .notices import Make, Notices
from .notices import ignore as ignore_end
from .seat import Seat, Write
from .slow import SlowSide

logger = logging.getLogger(__name__)


class Loop(Protocol):
    def time(self) -> float: ...
    def call_soon(self, callback: Callable[[], object], /) -> Any: ...
    def call_later(self, delay_s: float, callback: Callable[[], object], /) -> Any: ...


def ignore(since_ms: int) -> None:
    """Where nobody asks how long it took."""


class Hub:
    def __init__(self, loop: Loop | None = None) -> None:
        self._own_loop = loop
        self.on_written: Callable[[int], None] = ignore
        """Is told after each turn's writes since when the oldest of their messages was under way."""
        self.clear()

    def clear(self) -> None:
        """Forget everybody, as when the loop they lived on has ended."""
        self._members = Members()
        self._pending: list[Owed] = []
        self._is_flushing = False
        self._notices = Notices(self)
        self.slow = SlowSide(self)
        self.frames = 0
        """Handed to connections since the start."""
        self.broken = 0
        self.closed: Counter[int] = Counter()
        """By code."""
        self._since_ms = 0

    @property
    def loop(self) -> Loop:
        return self._own_loop or asyncio.get_running_loop()

    @property
    def members(self) -> int:
        return self._members.number

    def has(self, topic: str) -> bool:
        """Whether anybody is subscribed to it."""
        return bool(self._members.audiences(topic))

    def join(self, connection: Connection, on_slow: Callable[[], None]) -> Seat:
        """`on_slow` is called once, after the seat was given up; `seat.end` still works then."""
        seat = Seat(self, connection, self._members.group(), on_slow)
        seat.sit(seat.group)
        connection.watcher = seat
        return seat

    def leave(self, seat: Seat) -> None:
        if seat.is_open:
            seat.leave()
            self.slow.drop(seat)
            seat.group.remove(seat)
            self._members.tidy(seat.group)

    def subscribe(self, seat: Seat, topics: Iterable[str], variant: int = 0) -> None:
        """In addition to what it has; a topic that it has in another variant changes."""
        self.flush()
        if seat.is_open:
            self._move(seat, self._members.with_topics(seat.group, topics, variant))

    def unsubscribe(self, seat: Seat, topics: Iterable[str]) -> None:
        self.flush()
        if seat.is_open:
            gone = set(topics)
            self._move(seat, self._members.without_topics(seat.group, gone))
            if seat in self.slow.conflating:
                self.slow.conflating[seat].forget(gone)

    def publish(self, message: Message, *topics: str, since_ms: int = 0) -> None:
        """Encoded once for each variant that anybody wants, and not at all for nobody."""
        built: dict[int, bytes] = {}
        for topic in topics:
            for variant, audience in self._members.audiences(topic).items():
                data = built.get(variant)
                if data is None:
                    data = built[variant] = frame(message.payload(variant))
                self._pending.append((audience, data))
                if self.slow.conflating:
                    self._fold(audience, message)
        if self._pending:
            self._since_ms = self._since_ms or since_ms
            if not self._is_flushing:
                self._is_flushing = True
                self.loop.call_soon(self.flush)

    def notify(self, make: Make, told: Callable[[], None] = ignore_end, variant: int = 0) -> None:
        """Tell everybody what `make` says of their topics, after all that was published before; with a
        `variant`, those who asked for that. `told` is called in the end."""
        self.settle()
        self._notices.tell([group for group in self._members.groups if group.has(variant)], make, told)

    def flush(self) -> None:
        self._is_flushing = False
        if self._pending:
            owed, self._pending = self._pending, []
            self._deliver(owed)
        if self._since_ms:
            since_ms, self._since_ms = self._since_ms, 0
            self.on_written(since_ms)

    def settle(self) -> None:
        """Before one of them gets anything of its own, all get what they are due."""
        if self._pending:
            self.flush()

    def hand(self, seat: Seat, write: Write, frames: bytes) -> None:
        try:
            write(frames)
        except Exception:  # noqa: BLE001 - whatever is wrong with one connection ends that one alone
            self._break(seat)

    def _deliver(self, owed: list[Owed]) -> None:
        """To whom, is settled before the first write: that may come back here."""
        now = self.loop.time()
        if len(owed) == 1:
            ((audience, data),) = owed
            row, audience.wrote_at = audience.row, now
            self.frames += row.size
            self._finish(send_to_all(row, data))
            self._write(row.others, repeat(data))
            return
        due = Round.of(owed, now)
        self.frames += due.number
        for row, data in due.shared:
            self._finish(send_to_all(row, data))
        self._finish(due.send_alone())
        self._write(due.others, due.their_frames)

    def _finish(self, rests: list[Rest]) -> None:
        for seat, rest in rests:
            self.hand(seat, seat.write, rest)

    def _write(self, seats: list[Seat], frames: Iterable[bytes]) -> None:
        if seats:
            write_each([seat.write for seat in seats], frames, lambda index: self._break(seats[index]))

    def _fold(self, audience: Audience, message: Message) -> None:
        for seat, backlog in self.slow.conflating.items():
            if audience in seat.group.audiences:
                backlog.fold(audience.topic, cast(Latest, message), audience.variant)

    def _move(self, seat: Seat, group: Group) -> None:
        """After a flush: what was published before is for those who were there before."""
        before = seat.group
        if group is not before:
            before.remove(seat)
            seat.sit(group)
            self._members.tidy(before)

    def _break(self, seat: Seat) -> None:
        self.broken += 1
        logger.warning("A connection broke at a write", exc_info=True)
        self.leave(seat)
        with contextlib.suppress(Exception):
            seat.connection.abort()
