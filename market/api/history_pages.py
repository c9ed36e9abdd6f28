"""Pages of history on their way: how many there may be, and how they are read beside the event loop."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from weakref import WeakKeyDictionary, WeakSet

from core.contract.errors import Overloaded
from core.threads import in_thread_promptly

MOST_PAGES = 64
MOST_OF_AN_ACCOUNT = 16
"""Pages that are sent at the same time by a process; of one that is read slowly, a part is in memory."""
READ_AT_ONCE = 2
"""Parts that the database is asked for at the same time: it has others to answer."""


class OpenPage:
    def __init__(self, account_id: int) -> None:
        self.account_id = account_id


class OpenPages:
    """Those of this process. One that nobody sends any more is gone, whatever became of its answer."""

    def __init__(self) -> None:
        self._open: WeakSet[OpenPage] = WeakSet()

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, account_id: int) -> OpenPage:
        own = sum(page.account_id == account_id for page in self._open)
        if own >= MOST_OF_AN_ACCOUNT:
            raise Overloaded(
                f"An account may read {MOST_OF_AN_ACCOUNT} pages of history at a time. Read one to its end.",
                retry_after=1,
            )
        if len(self._open) >= MOST_PAGES:
            raise Overloaded(retry_after=1)
        page = OpenPage(account_id)
        self._open.add(page)
        return page

    def leave(self, page: OpenPage) -> None:
        self._open.discard(page)


open_pages = OpenPages()
_reading: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def sent(page: OpenPage, parts: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Each part is made when the one before has been taken: a client that reads slowly holds back nothing but
    its own page."""
    turn = _reading.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(READ_AT_ONCE))
    try:
        while True:
            async with turn:
                part = await in_thread_promptly(next, parts, None)
            if part is None:
                return
            if part:
                yield part
    finally:
        open_pages.leave(page)
