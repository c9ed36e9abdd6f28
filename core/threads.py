"""The few threads in which the API asks the database, and the queue in front of them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import close_old_connections

from core.contract.errors import Overloaded
from core.deadlines import patient

from .background import is_done_within, retrieve

P = ParamSpec("P")
T = TypeVar("T")

# A longer queue would outlast the patience of clients: an early 503 is better.
MAX_WAITING = 128

# How long a request waits. A suspended database neither answers nor refuses.
PROMPTLY_S = patient(2.0)
_pool = ThreadPoolExecutor(settings.API_THREADS, thread_name_prefix="database")

# A revocation must take effect within two seconds even while requests fill the queue.
_reserved = ThreadPoolExecutor(1, thread_name_prefix="control-events")
_in_flight = 0
_overdue = 0
"""Threads that still wait for the database after their callers have given up."""


async def in_thread(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that uses the ORM. The event loop must never do so itself."""
    global _in_flight
    if _in_flight >= settings.API_THREADS + MAX_WAITING:
        raise Overloaded(retry_after=1)
    _in_flight += 1
    try:
        return await run_in(_pool, ask, *args, **kwargs)
    finally:
        _in_flight -= 1


async def in_thread_promptly(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """For requests: an answer soon, or a refusal. A query that hangs keeps its thread; once all threads hang,
    requests are refused at once."""
    if _overdue >= settings.API_THREADS:
        raise Overloaded(retry_after=2)
    began = False

    def run() -> T:
        nonlocal began
        began = True
        return ask(*args, **kwargs)

    asking = asyncio.ensure_future(in_thread(run))
    try:
        is_done = await is_done_within(asking, PROMPTLY_S)
    except asyncio.CancelledError:
        asking.cancel()
        raise
    if is_done:
        return asking.result()
    if began:
        _note_overdue(asking)
    else:
        asking.cancel()
    raise Overloaded(retry_after=2)


def _note_overdue(asking: asyncio.Future[T]) -> None:
    global _overdue
    _overdue += 1

    def over(asked: asyncio.Future[T]) -> None:
        global _overdue
        _overdue -= 1
        retrieve(asked)

    asking.add_done_callback(over)


async def in_reserved_thread(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Bypasses the queue, for reading the control events only."""
    return await run_in(_reserved, ask, *args, **kwargs)


async def run_in(pool: ThreadPoolExecutor, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    def run() -> T:
        try:
            return ask(*args, **kwargs)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(pool, copy_context().run, run)
