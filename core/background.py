"""Tasks: ending them, and one look for all who ask the same at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

# Longer than any of them needs to end in order.
AGAIN_S = 3.0


async def cancel_and_wait(*tasks: asyncio.Task[Any] | None, again_s: float = AGAIN_S) -> None:
    """Cancel them and wait until they have ended; what they raise then is dropped.

    They are asked again and again, because Python 3.11's `wait_for`, which redis-py uses, loses a
    cancellation now and then, and a task that was not told would be waited for for ever."""
    waiting = {task for task in tasks if task is not None}
    while waiting:
        for task in waiting:
            task.cancel()
        ended, waiting = await asyncio.wait(waiting, timeout=again_s)
        for task in ended:
            if not task.cancelled():
                # Asked for, so that nobody is warned that nobody asked.
                task.exception()


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedLookups(Generic[K, V]):
    """Who asks while a look is under way shares the next one with all who come until it begins: nobody is
    answered with less than was true when they asked."""

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Task[V]] = {}
        self._next: dict[K, asyncio.Task[V]] = {}

    async def ask(self, what: K, look: Callable[[], Awaitable[V]]) -> V:
        following = self._next.get(what)
        if following is None:
            following = self._next[what] = asyncio.create_task(self._look(what, look), name="a shared look")
            following.add_done_callback(_note)
        # Whoever leaves takes nothing from the others.
        return await asyncio.shield(following)

    async def _look(self, what: K, look: Callable[[], Awaitable[V]]) -> V:
        if what in self._under_way:
            await asyncio.wait((self._under_way[what],))
        self._under_way[what] = self._next.pop(what)
        try:
            return await look()
        finally:
            del self._under_way[what]


def _note(looked: asyncio.Task[V]) -> None:
    """Asked for, so that nobody is warned that nobody asked."""
    if not looked.cancelled():
        looked.exception()
