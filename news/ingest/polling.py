"""Polls the sources that are due, from the request to the drafts, and records what goes wrong.

However many processes there are, the one that moves the next poll of a source forward polls it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from core.background import BackgroundLoop, cancel_and_wait
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread, run_in
from news.models import Source
from news.scoring import Scorer, score_title, scoring_threads

from . import intake
from .fetching import Fetcher
from .intake import FeedReading, Judged
from .parsing import FetchedFeed, NoFeed
from .parsing_process import read_apart

logger = logging.getLogger(__name__)
LOOK_S = 5.0
# Few at a time, so that a slow server holds up few others, and many sources do not use up the API's threads.
AT_ONCE = 4
# If the process that claimed a source dies, the source is free again after this.
CLAIM = timedelta(minutes=2)
# A poll may take any time, as it waits for threads, a model and the database, so it renews its claim.
RENEW_S = 30.0
# A server may ask clients to stay away for any length of time; we heed at most a day.
LONGEST = timedelta(hours=24)
MOST_DOUBLINGS = 12
UNCHANGED = "nothing new"
ANOTHER = "another poll has claimed it in the meantime and takes what is new"


def polling_loop() -> BackgroundLoop:
    return BackgroundLoop(
        "news sources",
        poll_due,
        fault=LastingFault(logger, "The news wait for the database"),
        broke="Polling the news broke and goes on",
        passing=UNANSWERED,
        again=LOOK_S,
    )


async def poll_due() -> None:
    claimed = await in_thread(claim_due, timezone.now(), AT_ONCE)
    await asyncio.gather(*(poll(source) for source in claimed))
    if len(claimed) < AT_ONCE:
        await asyncio.sleep(LOOK_S)


def claim_due(now: datetime, most: int) -> list[Source]:
    due = list(Source.objects.due(now)[:most])
    return [source for source in due if claim(source, now)]


def claim(source: Source, now: datetime) -> bool:
    """Only one of the processes that saw it due updates the row. A claim is renewed in the same way."""
    seen = Source.objects.filter(pk=source.pk, next_poll_at=source.next_poll_at)
    if seen.update(next_poll_at=now + CLAIM) == 0:
        return False
    source.next_poll_at = now + CLAIM
    return True


Renew = Callable[[], Awaitable[bool]]


@asynccontextmanager
async def renewed_claim(source: Source, renew_s: float) -> AsyncIterator[Renew]:
    """Keeps the claim on a source for as long as its poll takes. Yields a function that renews it at once and
    returns whether it was still ours."""
    # Two renewals at once would each mistake the other for another process's claim.
    turn = asyncio.Lock()

    async def renew() -> bool:
        async with turn:
            return await in_thread(claim, source, timezone.now())

    async def keep_renewing() -> None:
        is_ours = True
        while is_ours:
            await asyncio.sleep(renew_s)
            try:
                is_ours = await renew()
            except UNANSWERED as error:
                logger.warning("The claim on %s could not be renewed now: %s", source, error)

    task = asyncio.create_task(keep_renewing(), name=f"claim of {source.pk}")
    try:
        yield renew
    finally:
        await cancel_and_wait(task)


class Polled(NamedTuple):
    outcome: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return self.problem or self.outcome


async def poll(
    source: Source, scorer: Scorer = score_title, fetcher: Fetcher | None = None, renew_s: float = RENEW_S
) -> Polled:
    """Expects a source that this process has claimed."""
    now = timezone.now()
    try:
        async with renewed_claim(source, renew_s) as renew:
            fetcher = fetcher or Fetcher(allow_loopback=settings.NEWS_FEEDS_ON_LOOPBACK)
            fetched = await fetcher.fetch(source.address, source.etag, source.modified)
            if fetched is not None:
                return await _take(source, renew, fetched, now, scorer)
            await in_thread(note_success, source, now, UNCHANGED, source.etag, source.modified)
            return Polled(UNCHANGED)
    except NoFeed as error:
        return await _failed(source, now, str(error), error.retry_after_s)
    except UNANSWERED as error:
        logger.warning("The news of %s wait for the database: %s", source, error)
        return Polled(problem="the database did not answer")
    except Exception as error:  # noqa: BLE001 - the top of a poll: a fault of one source must not stop the others
        logger.exception("Polling %s broke", source)
        return await _failed(source, now, f"a fault of our own ({type(error).__name__}); the log has more")


async def _take(source: Source, renew: Renew, fetched: FetchedFeed, now: datetime, scorer: Scorer) -> Polled:
    reading = await in_thread(intake.read, source, await read_apart(fetched), now)
    # Checked before scoring, which would otherwise be paid for twice.
    if reading.to_judge and not await renew():
        return Polled(problem=ANOTHER)
    judged = await run_in(scoring_threads, intake.judge, source, reading, scorer)
    return Polled(await in_thread(_store, source, reading, judged, fetched, now))


def _store(
    source: Source, reading: FeedReading, judged: Sequence[Judged], fetched: FetchedFeed, now: datetime
) -> str:
    outcome = str(intake.store(source, reading, judged)) or UNCHANGED
    # Only after the intake: had that failed, the validators would hide the same feed next time.
    note_success(source, now, outcome, fetched.etag, fetched.modified)
    return outcome


async def _failed(source: Source, now: datetime, reason: str, retry_after_s: int = 0) -> Polled:
    try:
        await in_thread(note_failure, source, now, reason, retry_after_s)
    except UNANSWERED as error:
        logger.warning("What is wrong with %s could not be noted: %s", source, error)
    return Polled(problem=reason)


def note_success(source: Source, now: datetime, outcome: str, etag: str, modified: str) -> None:
    # Only the fields that polling owns: staff may be editing the rest.
    Source.objects.filter(pk=source.pk).update(
        etag=etag,
        modified=modified,
        polled_at=now,
        next_poll_at=now + pause(source.interval_s, failures=0),
        failures=0,
        last_error="",
        outcome=outcome[:200],
    )


def note_failure(source: Source, now: datetime, reason: str, retry_after_s: int) -> None:
    Source.objects.filter(pk=source.pk).update(
        polled_at=now,
        next_poll_at=now + pause(source.interval_s, source.failures + 1, retry_after_s),
        failures=F("failures") + 1,
        last_error=f"{reason[:1].upper()}{reason[1:299]}",
    )


def pause(interval_s: int, failures: int, retry_after_s: int = 0) -> timedelta:
    """The interval, doubled with each failure in a row up to a day, but at least what the server asks for."""
    delay = timedelta(seconds=interval_s)
    if failures:
        delay = max(delay, min(delay * 2 ** min(failures, MOST_DOUBLINGS), LONGEST))
    return max(delay, min(timedelta(seconds=retry_after_s), LONGEST))
