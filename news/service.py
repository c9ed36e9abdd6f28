"""What the newsroom does beside the requests: polls its sources, and settles what was said."""

from __future__ import annotations

import asyncio

from django.conf import settings

from accounts.tasks import end

from .calibration.report import report
from .calibration.settling import keep_settling
from .ingest.poller import keep_polling


class Newsroom:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks.append(asyncio.create_task(keep_settling(), name="news outcomes"))
        if settings.NEWS_POLLING:
            self._tasks.append(asyncio.create_task(keep_polling(), name="news sources"))

    async def stop(self) -> None:
        await end(*self._tasks)
        self._tasks.clear()
        report.forget()


newsroom = Newsroom()
"""One per process."""
