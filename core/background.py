"""Background tasks: loops that outlive their faults, an orderly end, and lookups shared by many callers."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from types import TracebackType
from typing import Any, Generic, TypeVar

from core.database import TRANSIENT
from core.fault_log import Fault

# Longer than any task needs for an orderly end.
CANCEL_AGAIN_S = 3.0


async def cancel_and_wait(*tasks: asyncio.Task[Any] | None, again_s: float = CANCEL_AGAIN_S) -> None:
    """Cancel them and wait until they have ended; what they raise is dropped. They are cancelled again and
    again, because Python 3.11's `wait_for`, which redis-py uses, now and then loses a cancellation, and such
    a task would never end."""
    waiting = {task for task in tasks if task is not None}
    while waiting:
        for task in waiting:
            task.cancel()
        ended, waiting = await asyncio.wait(waiting, timeout=again_s)
        for task in ended:
            retrieve(task)


def retrieve(ended: asyncio.Future[Any]) -> None:
    """Read the outcome; asyncio warns about faults that are never read."""
    if not ended.cancelled():
        ended.exception()


async def first_done(*waiting: Awaitable[Any], timeout_s: float | None = None) -> None:
    """Wait until one of them is done, raise what it raised, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(*tasks)
    for task in done:
        task.result()


SLICES = 8


async def is_done_within(asked: asyncio.Future[Any], seconds: float) -> bool:
    """Waits in slices, so that a standstill of the machine, however long, uses up only one of them."""
    for _ in range(SLICES):
        if (await asyncio.wait((asked,), timeout=seconds / SLICES))[0]:
            return True
    return False


class TimeoutInSlices:
    """Like `asyncio.timeout`, but a standstill of this process uses up only one slice: what arrived during it
    is read before the next one ends."""

    def __init__(self, seconds: float) -> None:
        self._slice_s, self._left = seconds / SLICES, SLICES
        self._limit, self._loop = asyncio.timeout(None), asyncio.get_running_loop()

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._timer = self._loop.call_later(self._slice_s, self._pass_slice)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _pass_slice(self) -> None:
        self._left -= 1
        if self._left:
            self._timer = self._loop.call_later(self._slice_s, self._pass_slice)
        else:
            self._limit.reschedule(self._loop.time())


Wait = float | Callable[[], Awaitable[object]]
"""Seconds, or a coroutine function that is awaited instead."""


def scattered(seconds: float) -> Wait:
    """A random pause of at most `seconds`, so that processes started together do not act at once."""
    return lambda: asyncio.sleep(seconds * random.uniform(0.1, 1))  # noqa: S311 - nothing secret


class BackgroundLoop:
    """Repeats one action until it is stopped, and survives its faults."""

    def __init__(
        self,
        name: str,
        act: Callable[[], Awaitable[object]],
        *,
        fault: Fault,
        broke: str,
        passing: tuple[type[Exception], ...] = TRANSIENT,
        before: Wait = 0.0,
        after: Wait = 0.0,
        again: Wait | None = None,
    ) -> None:
        """Errors of the kinds in `passing` go to `fault`; any other is logged with its traceback under the
        text `broke`. After either it waits for `again` where that is given, and otherwise for `after`."""
        self.name = name
        self._act, self._fault, self._broke, self._passing = act, fault, broke, passing
        self._before, self._after = before, after
        self._again = after if again is None else again
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self.run(), name=self.name)

    async def stop(self) -> None:
        await cancel_and_wait(self._task)
        self._task = None

    async def run(self) -> None:
        while True:
            await _wait(self._before)
            try:
                await self._act()
            except self._passing as error:
                self._fault.tell(error)
                await _wait(self._again)
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                self._fault.logger.exception(self._broke)
                await _wait(self._again)
            else:
                self._fault.over()
                await _wait(self._after)


async def _wait(wait: Wait) -> None:
    await (wait() if callable(wait) else asyncio.sleep(wait))


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedLookups(Generic[K, V]):
    """Callers that ask while a lookup is running share the next one, so no answer is older than
    its question."""

    def __init__(self) -> None:
        self.under_way: dict[K, asyncio.Task[V]] = {}
        self.next: dict[K, asyncio.Task[V]] = {}

    async def ask(self, what: K, look: Callable[[], Awaitable[V]]) -> V:
        following = self.next.get(what)
        if following is None:
            following = self.next[what] = asyncio.create_task(self._look(what, look), name="a shared look")
            following.add_done_callback(retrieve)
        # A caller that is cancelled does not cancel the lookup of the others.
        return await asyncio.shield(following)

    async def _look(self, what: K, look: Callable[[], Awaitable[V]]) -> V:
        if what in self.under_way:
            await asyncio.wait((self.under_way[what],))
        self.under_way[what] = self.next.pop(what)
        try:
            return await look()
        finally:
            del self.under_way[what]
