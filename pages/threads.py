"""The few threads in which pages run, and the queue in front of them."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

from asgiref.sync import ThreadSensitiveContext
from django.db import close_old_connections

from core.contract.errors import Overloaded
from core.deadlines import patient
from core.kept import worked_for_all_s

# After this a request is refused, so that its client does not wait without an answer.
PATIENCE_S = patient(5.0)
RETRY_AFTER_S = 2

Worked = Callable[[float], object]
of_thread = threading.local()


def end_page() -> float:
    """For how long its thread kept the processor busy since the page before ended."""
    close_old_connections()
    before_s: float = getattr(of_thread, "worked_s", 0.0)
    of_thread.worked_s = worked_s = time.thread_time() - worked_for_all_s()
    return worked_s - before_s


class PageThreads:
    """A page has a thread to itself until it is made. Each thread keeps its connection to the database, so
    there are never more connections than threads."""

    def __init__(self, count: int, most_waiting: int, name: str) -> None:
        self._most_waiting = most_waiting
        self._free = deque(ThreadPoolExecutor(1, thread_name_prefix=f"{name}-{n}") for n in range(count))
        self._waiting: deque[asyncio.Future[ThreadPoolExecutor]] = deque()

    @asynccontextmanager
    async def lease(self, worked: Worked | None = None) -> AsyncIterator[None]:
        """Tells `worked` for how long the thread kept the processor busy."""
        thread = await self._take()
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            self._give_back(thread, worked)

    async def _take(self) -> ThreadPoolExecutor:
        if self._free:
            return self._free.popleft()
        if len(self._waiting) >= self._most_waiting:
            raise Overloaded(retry_after=RETRY_AFTER_S)
        turn: asyncio.Future[ThreadPoolExecutor] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # A thread became free at the very moment when the waiting ended.
                self._hand_on(turn.result())
            if isinstance(error, TimeoutError):
                raise Overloaded(retry_after=RETRY_AFTER_S) from None
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(turn)

    def _give_back(self, thread: ThreadPoolExecutor, worked: Worked | None) -> None:
        """Waits for the pages that still run, because one whose client has gone cannot be stopped."""
        loop = asyncio.get_running_loop()

        def hand_on(seconds: float) -> None:
            self._hand_on(thread)
            if worked is not None:
                worked(seconds)

        def is_idle(ended: Future[float]) -> None:
            try:
                loop.call_soon_threadsafe(hand_on, 0.0 if ended.exception() else ended.result())
            except RuntimeError:
                # The loop has ended, and so have all who waited on it.
                self._free.append(thread)

        thread.submit(end_page).add_done_callback(is_idle)

    def _hand_on(self, thread: ThreadPoolExecutor) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(thread)
                return
        self._free.append(thread)
