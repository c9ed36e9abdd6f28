"""The few threads in which pages run, and the queue in front of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

from asgiref.sync import ThreadSensitiveContext
from django.db import close_old_connections

from core.contract.errors import Overloaded
from core.deadlines import patient

# After this a request is refused, so that its client does not wait without an answer.
PATIENCE_S = patient(5.0)
RETRY_AFTER_S = 2


class PageThreads:
    """A page has a thread to itself until it is made. Each thread keeps its connection to the database, so
    there are never more connections than threads."""

    def __init__(self, count: int, most_waiting: int, name: str) -> None:
        self._most_waiting = most_waiting
        self._free = deque(ThreadPoolExecutor(1, thread_name_prefix=f"{name}-{n}") for n in range(count))
        self._waiting: deque[asyncio.Future[ThreadPoolExecutor]] = deque()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        thread = await self._take()
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            self._give_back(thread)

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

    def _give_back(self, thread: ThreadPoolExecutor) -> None:
        """Waits for the pages that still run, because one whose client has gone cannot be stopped."""
        loop = asyncio.get_running_loop()

        def is_idle(_: Future[None]) -> None:
            try:
                loop.call_soon_threadsafe(self._hand_on, thread)
            except RuntimeError:
                # The loop has ended, and so have all who waited on it.
                self._free.append(thread)

        thread.submit(close_old_connections).add_done_callback(is_idle)

    def _hand_on(self, thread: ThreadPoolExecutor) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(thread)
                return
        self._free.append(thread)
