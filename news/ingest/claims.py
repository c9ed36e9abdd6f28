"""Who polls a source: on any number of processes, whoever moves its next poll on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from django.db import Error
from django.db.models import F
from django.utils import timezone

from accounts.exceptions import Overloaded
from accounts.tasks import end
from accounts.threads import in_thread
from news.models import Source

from .schedule import pause

logger = logging.getLogger(__name__)

# If the one who claimed it dies, the source is free again after this.
CLAIM = timedelta(minutes=2)
# A poll has no longest time: it waits for threads, for a model, for the database. So it renews its claim.
RENEW_S = 30.0


def claim_due(now: datetime, most: int) -> list[Source]:
    due = list(Source.objects.due(now)[:most])
    return [source for source in due if claim(source, now)]


def claim(source: Source, now: datetime) -> bool:
    """The row count decides: of many who saw it due, one moves it. Renewed in the same way."""
    seen = Source.objects.filter(pk=source.pk, next_poll_at=source.next_poll_at)
    if seen.update(next_poll_at=now + CLAIM) == 0:
        return False
    source.next_poll_at = now + CLAIM
    return True


@asynccontextmanager
async def hold(source: Source, renew_s: float = RENEW_S) -> AsyncIterator[Holding]:
    """The claim stays with whoever polls, however long it takes."""
    holding = Holding(source)
    keeping = asyncio.create_task(holding.keep(renew_s), name=f"claim of {source.pk}")
    try:
        yield holding
    finally:
        await end(keeping)


class Holding:
    def __init__(self, source: Source) -> None:
        self._source = source
        # Two at once would each take the other's renewal for somebody else's claim.
        self._turn = asyncio.Lock()

    async def renew(self) -> bool:
        async with self._turn:
            return await in_thread(claim, self._source, timezone.now())

    async def keep(self, renew_s: float) -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(renew_s)
            try:
                is_ours = await self.renew()
            except (Error, Overloaded) as error:
                logger.warning("The claim on %s could not be renewed now: %s", self._source, error)


def note_success(source: Source, now: datetime, outcome: str, etag: str, modified: str) -> None:
    # Only what polling writes: staff may be editing the rest.
    Source.objects.filter(pk=source.pk).update(
        etag=etag,
        modified=modified,
        polled_at=now,
        next_poll_at=now + pause(source.interval_s, failures=0),
        failures=0,
        last_error="",
        outcome=outcome[:200],
    )


def note_failure(source: Source, now: datetime, reason: str, retry_after_s: int = 0) -> None:
    Source.objects.filter(pk=source.pk).update(
        polled_at=now,
        next_poll_at=now + pause(source.interval_s, source.failures + 1, retry_after_s),
        failures=F("failures") + 1,
        last_error=f"{reason[:1].upper()}{reason[1:299]}",
    )
