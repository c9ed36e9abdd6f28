"""The few threads in which the archive's store is asked. If it hangs, only those who read from it wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from core.contract.errors import Overloaded

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 8
# Longer than a store takes that is asked again and again.
PATIENCE_S = 90.0
AWAY = "The archive's store is not responding at the moment. Try again shortly."
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="archive")


async def in_archive_thread(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    asked = asyncio.get_running_loop().run_in_executor(_pool, lambda: ask(*args, **kwargs))
    try:
        return await asyncio.wait_for(asked, PATIENCE_S)
    except TimeoutError:
        raise Overloaded(AWAY, retry_after=5) from None


def do_later(act: Callable[[], object]) -> None:
    """Nobody waits for it."""
    _pool.submit(act)
