"""The handlers of an event run once each, one after the other. Later events wait for them only so long; what
takes longer goes on beside them."""

import asyncio
import inspect
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from core.background import cancel_and_wait, retrieve
from core.database import TRANSIENT
from core.fault_log import LastingFault

from .kinds import EventKind

logger = logging.getLogger(__name__)
late_wait = LastingFault(logger, "A control event waits, trying again")
Handler = Callable[[dict[str, Any]], Awaitable[None] | None]

# No other event is handled in this time.
HANDLE_WITHIN_S = 5.0
AGAIN_S = 1.0

# After this, the handler waits for something that never comes.
GIVE_UP_S = 120.0

is_handling: ContextVar[bool] = ContextVar("handling a control event", default=False)


class Handling:
    """The handlers of one event, as far as they have come."""

    def __init__(self, kind: str, facts: dict[str, Any], handlers: list[Handler]) -> None:
        self.kind = kind
        self._facts, self._left = facts, list(handlers)
        self._work: asyncio.Task[None] | None = None

    def work(self) -> asyncio.Task[None]:
        """Goes on where it stopped; a transient fault stops it at the handler that met it."""
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run(), name=f"handlers of {self.kind}")
        return self._work

    async def _run(self) -> None:
        is_handling.set(True)
        while self._left:
            await self._handle(self._left[0])
            del self._left[0]

    async def _handle(self, handler: Handler) -> None:
        try:
            done = handler(self._facts)
            if inspect.isawaitable(done):
                async with asyncio.timeout(GIVE_UP_S):
                    await done
        except TRANSIENT:
            raise
        except Exception:  # noqa: BLE001 - one broken handler must not deafen the process
            logger.exception("A handler of %s failed at %s", self.kind, self._facts)


class Handlers:
    """The handlers of each kind of event."""

    def __init__(self) -> None:
        self._of: dict[str, list[Handler]] = defaultdict(list)
        self._at_work: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()

    def on(self, kind: EventKind, handler: Handler) -> None:
        self._of[kind].append(handler)

    def begin(self, kind: str, facts: dict[str, Any]) -> Handling:
        return Handling(kind, facts, self._of[kind])

    async def see(self, handling: Handling) -> None:
        """Wait until all are done, or for long enough. A transient fault is raised, so that the caller tries
        again. A caller that is cancelled leaves the handlers at work."""
        work = self._work(handling)
        if (await asyncio.wait((work,), timeout=HANDLE_WITHIN_S))[0]:
            work.result()
            return
        logger.warning("The handlers of %s take longer and go on beside what follows", handling.kind)
        late = asyncio.create_task(self._see_through(handling), name=f"late handlers of {handling.kind}")
        self._late.add(late)
        late.add_done_callback(self._late.discard)

    async def _see_through(self, handling: Handling) -> None:
        while True:
            try:
                await self._work(handling)
            except TRANSIENT as error:
                late_wait.tell(error)
                await asyncio.sleep(AGAIN_S)
            else:
                late_wait.over()
                return

    def _work(self, handling: Handling) -> asyncio.Task[None]:
        work = handling.work()
        self._at_work.add(work)
        work.add_done_callback(self._ended)
        return work

    def _ended(self, work: asyncio.Task[None]) -> None:
        self._at_work.discard(work)
        retrieve(work)

    async def stop(self) -> None:
        await cancel_and_wait(*self._late)
        await cancel_and_wait(*self._at_work)
