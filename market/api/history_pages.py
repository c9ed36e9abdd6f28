"""Pages of history on their way: how many there may be, and how they are read beside the event loop."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from weakref import WeakKeyDictionary

from core.contract.open_bodies import OpenBodies, OpenBody
from core.threads import in_thread_promptly

MOST_PAGES = 64
MOST_OF_AN_ACCOUNT = 16
"""Pages that are sent at the same time by a process; of one that is read slowly, a part is in memory."""
READ_AT_ONCE = 1
"""Parts that the database is asked for at the same time. SQLite writes them in this process: more would take
the cores from the event loop, and a part is read faster than it is sent."""


open_pages = OpenBodies(
    MOST_OF_AN_ACCOUNT,
    MOST_PAGES,
    f"An account may read {MOST_OF_AN_ACCOUNT} pages of history at a time. Read one to its end.",
    retry_after=1,
)
_reading: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def sent(page: OpenBody, parts: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
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
