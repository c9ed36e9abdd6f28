"""Signals in this process: what is announced goes to its hub in commit order, and to those who were away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from accounts.event_handling import PASSING
from accounts.events import EventFeed, feed
from accounts.tasks import end
from accounts.threads import in_thread
from accounts.troubles import Trouble
from instruments.catalogue import catalogue
from market.services import now_ms
from market.streams.framing import frame
from market.streams.kinds import SIGNALS
from market.streams.seat import Seat
from market.streams.stream import Stream

from .announcements import CLOSED, LATEST, Announced, last_position, position_of, read

logger = logging.getLogger(__name__)
telling_waits = Trouble(logger, "Announced signals wait for the database")

Read = Callable[[int, int, int], Awaitable[list[Announced]]]
# Fewer than may wait for a slow reader.
CHUNK = 500
AGAIN_S = 0.25


async def read_in_thread(after: int, upto: int, limit: int) -> list[Announced]:
    return await in_thread(read, after, upto, limit)


class Missed(NamedTuple):
    """The first portion of what a client missed."""

    upto: int
    """So far it was looked for; there may be more before, if the portion is full."""
    found: list[Announced]


class SignalStream(Stream):
    """Control events only say that there is something to read: what is told, and its order, is in the
    database. So none is lost while the database is away, and none comes twice."""

    def __init__(self, events: EventFeed, read: Read = read_in_thread, chunk: int = CHUNK) -> None:
        super().__init__(SIGNALS)
        self.position = 0
        """Of the last announcement that the hub was given."""
        self._read, self._chunk = read, chunk
        self._wake, self._telling = asyncio.Event(), asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        for kind in ("signal.published", "signal.closed"):
            events.on(kind, self._look)

    def symbols_of(self, topics: frozenset[str]) -> set[str]:
        return {topic for topic in topics if not topic.startswith(CLOSED)}

    async def start(self) -> None:
        """After the control events: what is announced from now on wakes it."""
        self._wake, self._telling = asyncio.Event(), asyncio.Lock()
        self.position = await in_thread(last_position)
        self._task = asyncio.create_task(self._follow(), name="signal stream")

    async def stop(self) -> None:
        await end(self._task)
        self.clear()

    async def find(self, signal_id: str) -> int | None:
        return await in_thread(position_of, signal_id)

    async def tell(self) -> None:
        """All that is new, to whoever listens."""
        async with self._telling:
            while found := await self._read(self.position, LATEST, self._chunk):
                for announced in found:
                    # Both in one step: whoever joins has either had it or will.
                    self.position = announced.position
                    self.hub.publish(announced.outgoing(now_ms()), *announced.topics)

    async def look_back(self, after: int) -> Missed:
        if after > self.position:
            # It was told by another process, which is ahead of this one.
            await self.tell()
        upto = self.position
        return Missed(upto, await self._read(after, upto, self._chunk) if after < upto else [])

    async def replay(self, seat: Seat, missed: Missed, topics: set[str], variant: int) -> None:
        """What `topics` bring that the seat did not hear before, then have the hub go on from there."""
        had = seat.topics
        await seat.drained()
        while seat.is_open:
            upto, found = missed
            send(seat, [each for each in found if each.topics & topics and not each.topics & had], variant)
            after = upto if len(found) < self._chunk else found[-1].position
            if after >= self.position:
                break
            await seat.drained()
            if seat.is_open:
                missed = await self.look_back(after)
        # No await since the comparison: nothing was told meanwhile.
        self.move(seat, topics, variant)

    def move(self, seat: Seat, topics: set[str], variant: int) -> None:
        """From now on it hears these."""
        self.hub.unsubscribe(seat, seat.topics - topics)
        self.hub.subscribe(seat, topics, variant)

    def _look(self, facts: dict[str, Any]) -> None:
        self._wake.set()

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.tell()
                telling_waits.over()
            except PASSING as error:
                telling_waits.tell(error)
                await self._try_again()
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                logger.exception("Announced signals could not be told, trying again")
                await self._try_again()

    async def _try_again(self) -> None:
        await asyncio.sleep(AGAIN_S)
        self._wake.set()


def send(seat: Seat, missed: list[Announced], variant: int) -> None:
    sent_ms = now_ms()
    if missed:
        seat.send(b"".join(frame(each.outgoing(sent_ms).payload(variant)) for each in missed))


signals = SignalStream(feed)


def tell_ended(gone: list[str]) -> None:
    """They stay subscribed to: what was published before still closes."""
    signals.tell_ended(gone, now_ms())


catalogue.on_deactivated.append(tell_ended)
