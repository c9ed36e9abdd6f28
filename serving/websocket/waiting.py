"""What one connection waits for. asyncio's queue and event make five lists of 0.8 KB for those who may wait,
before anybody does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


class Inbox:
    """Events for the application, which alone takes them, one after the other."""

    __slots__ = ("_events", "_loop", "_reader")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._events: list[Any] = []
        self._reader: Future[None] | None = None

    def qsize(self) -> int:
        return len(self._events)

    def empty(self) -> bool:
        return not self._events

    def put_nowait(self, event: Any) -> None:
        self._events.append(event)
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    def take(self) -> Any:
        return self._events.pop(0)

    def arrival(self) -> Future[None]:
        """To be awaited when it is empty."""
        self._reader = self._loop.create_future()
        return self._reader


class Gate:
    """Open nearly always, so that those who wait have a list only while it is closed."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[Future[None]] | None = None

    def is_set(self) -> bool:
        return self._waiting is None

    def set(self) -> None:
        waiting, self._waiting = self._waiting, None
        for each in waiting or ():
            if not each.done():
                each.set_result(None)

    def clear(self) -> None:
        if self._waiting is None:
            self._waiting = []

    async def wait(self) -> None:
        if self._waiting is not None:
            opened = self._loop.create_future()
            self._waiting.append(opened)
            await opened
