"""The end of trust: nothing was heard of revocations for too long, so streams end as requests are refused."""

from __future__ import annotations

import asyncio
import logging

from accounts.events import EventFeed, feed
from accounts.tasks import end

from .sockets import Sockets, sockets

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
# All at once would hold up those who ask for something else.
AT_ONCE, PAUSE_S = 100, 0.05


class TrustWatch:
    def __init__(self, events: EventFeed, held: Sockets) -> None:
        self._events, self._sockets = events, held
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="trust in known keys")

    async def stop(self) -> None:
        await end(self._task)
        self._task = None

    async def _run(self) -> None:
        was_over = False
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            is_over = self._events.is_trust_over
            # Twice: a process that was frozen finds much time gone, and reads what it missed at once.
            if is_over and was_over:
                await self._end_all()
            was_over = is_over

    async def _end_all(self) -> None:
        ending = self._sockets.all()
        if ending:
            logger.warning("%d streams end: revocations could not be read for too long", len(ending))
        for start in range(0, len(ending), AT_ONCE):
            for socket in ending[start : start + AT_ONCE]:
                socket.give_up()
            await asyncio.sleep(PAUSE_S)


trust_watch = TrustWatch(feed, sockets)
