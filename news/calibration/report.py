"""The figures of now: added up at most once a minute in each process, whoever asks."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from accounts.threads import in_thread

from .figures import Figures, add_up

KEPT_S = 60.0


class Report:
    def __init__(self) -> None:
        self._figures: list[Figures] = []
        self._at: datetime | None = None
        self._made_at = 0.0
        self._lock: asyncio.Lock | None = None

    async def read(self) -> tuple[datetime, list[Figures]]:
        """Who comes while it is made waits for it, so that a crowd adds up once."""
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if self._at is None or time.monotonic() - self._made_at > KEPT_S:
                at = datetime.now(UTC)
                self._figures = await in_thread(add_up)
                self._at, self._made_at = at, time.monotonic()
            return self._at, self._figures

    def forget(self) -> None:
        self._at, self._lock = None, None


report = Report()
