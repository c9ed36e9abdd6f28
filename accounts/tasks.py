"""Ending tasks."""

from __future__ import annotations

import asyncio
from typing import Any

# Longer than any of them needs to end in order.
AGAIN_S = 3.0


async def end(*tasks: asyncio.Task[Any] | None, again_s: float = AGAIN_S) -> None:
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
