"""Reading the outbox: every process hears of every control event within half a second."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import InterfaceError, OperationalError

from .exceptions import Overloaded
from .outbox import ControlEvent
from .tasks import end
from .threads import in_reserved_thread
from .troubles import Trouble

logger = logging.getLogger(__name__)
events_wait = Trouble(logger, "The control events wait, trying again")
no_nudges = Trouble(logger, "No nudges from other processes")

Handler = Callable[[dict[str, Any]], Awaitable[None] | None]
NUDGE_GROUP = "control-events"
POLL_S = 0.25
BATCH = 500
NUDGE_WITHIN_S = 0.5
# The channel layer forgets the members of a group after a day.
REJOIN_S = 3600
# Nobody else hears anything while a handler is busy.
HANDLE_WITHIN_S = 5
# The database is away or busy; whatever else a handler raises is its own fault and would come again.
PASSING = (OperationalError, InterfaceError, Overloaded)


class EventFeed:
    """Polls the outbox by position and calls the handlers of each kind, in commit order."""

    # Nothing read for this long: what was learnt from events can no longer be relied on.
    STALE_AFTER_S = 1.5

    def __init__(self) -> None:
        self._handlers: dict[str, list[Handler]] = defaultdict(list)
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._position = 0
        self._handled = 0
        """How many handlers have had the event after this position."""
        self._read_at = float("-inf")

    def on(self, kind: str, handler: Handler) -> None:
        self._handlers[kind].append(handler)

    @property
    def is_current(self) -> bool:
        return time.monotonic() - self._read_at < self.STALE_AFTER_S

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._position = await in_reserved_thread(ControlEvent.objects.last_position)
        self._handled = 0
        self._read_at = time.monotonic()
        self._tasks = [asyncio.create_task(self._poll(), name="control events")]
        if settings.REDIS_URL:
            self._tasks.append(asyncio.create_task(self._listen(), name="control nudges"))

    async def stop(self) -> None:
        await end(*self._tasks)
        self._tasks, self._loop, self._read_at = [], None, float("-inf")

    def look_now(self) -> None:
        """May be called from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    async def _poll(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.read()
                events_wait.over()
            except PASSING as error:
                events_wait.tell(error)
            except Exception:  # noqa: BLE001 - the top of the task: a process deaf to revocations is worse
                logger.exception("The control events could not be read, trying again")

    async def read(self) -> None:
        """Hand on everything that is new."""
        started_at = time.monotonic()
        while events := await in_reserved_thread(self._next):
            for event in events:
                await self._hand_on(event)
        self._read_at = started_at

    def _next(self) -> list[ControlEvent]:
        return list(ControlEvent.objects.filter(position__gt=self._position).order_by("position")[:BATCH])

    async def _hand_on(self, event: ControlEvent) -> None:
        """Each handler once; after a fault that passes, the next read goes on with the one that met it."""
        for handler in self._handlers[event.kind][self._handled :]:
            try:
                done = handler(event.facts)
                if inspect.isawaitable(done):
                    async with asyncio.timeout(HANDLE_WITHIN_S):
                        await done
            except PASSING:
                raise
            except Exception:  # noqa: BLE001 - one broken handler must not deafen the process
                logger.exception("A handler of %s failed", event)
            self._handled += 1
        self._position, self._handled = event.position, 0

    async def _listen(self) -> None:
        """Other processes nudge over the channel layer; losing a nudge costs a quarter of a second."""
        while True:
            try:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                while True:
                    await layer.group_add(NUDGE_GROUP, channel)
                    no_nudges.over()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(REJOIN_S):
                            await self._wake_at_nudges(layer, channel)
            except Exception as error:  # noqa: BLE001 - Redis away: polling goes on, so try again later
                no_nudges.tell(error)
                await asyncio.sleep(1)

    async def _wake_at_nudges(self, layer: Any, channel: str) -> None:
        while True:
            await layer.receive(channel)
            self._wake.set()


feed = EventFeed()


def nudge() -> None:
    """After a commit: let every reader look now."""
    feed.look_now()
    if settings.REDIS_URL:
        try:
            async_to_sync(_nudge_others)()
        except Exception as error:  # noqa: BLE001 - the fact is committed; the readers will see it at their next look
            logger.info("Could not nudge the other processes: %s", error)


async def _nudge_others() -> None:
    # A Redis that accepts and never answers must not keep whoever revokes a key waiting.
    async with asyncio.timeout(NUDGE_WITHIN_S):
        await get_channel_layer().group_send(NUDGE_GROUP, {"type": "control"})
