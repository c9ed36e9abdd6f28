"""One poll of one source, from the question to the drafts. Whatever goes wrong is noted with the source."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import Error
from django.utils import timezone

from accounts.exceptions import Overloaded
from accounts.threads import in_thread
from news.models import Source
from news.scoring import Scorer, in_scoring_thread, score_title

from . import intake
from .child import read_apart
from .claims import RENEW_S, Holding, hold, note_failure, note_success
from .fetching import Fetched, Fetcher, FetchFailed
from .intake import Tally
from .parsing import NoFeed

logger = logging.getLogger(__name__)
UNCHANGED = "nothing new"
ANOTHER = "it was claimed anew meanwhile, and that poll takes what is new"


class Polled(NamedTuple):
    tally: Tally | None = None
    problem: str = ""

    def __str__(self) -> str:
        return self.problem or (str(self.tally) if self.tally else "") or UNCHANGED


async def poll(
    source: Source, scorer: Scorer = score_title, fetcher: Fetcher | None = None, renew_s: float = RENEW_S
) -> Polled:
    """Of a source that was claimed."""
    async with hold(source, renew_s) as holding:
        return await _poll(source, holding, scorer, fetcher)


async def _poll(source: Source, holding: Holding, scorer: Scorer, fetcher: Fetcher | None) -> Polled:
    fetcher = fetcher or Fetcher(allow_loopback=settings.NEWS_FEEDS_ON_LOOPBACK)
    now = timezone.now()
    try:
        fetched = await fetcher.fetch(source.address, source.etag, source.modified)
        polled = await _take(source, holding, fetched, now, scorer)
    except FetchFailed as error:
        return await _failed(source, now, str(error), error.retry_after_s)
    except NoFeed as error:
        return await _failed(source, now, str(error))
    except (Error, Overloaded) as error:
        logger.warning("The news of %s wait for the database: %s", source, error)
        return Polled(problem="the database did not answer")
    except Exception as error:  # noqa: BLE001 - the top of a poll: a fault of one source is none of the others'
        logger.exception("Polling %s broke", source)
        return await _failed(source, now, f"a fault of our own ({type(error).__name__}); the log has more")
    return polled


async def _take(source: Source, holding: Holding, fetched: Fetched, now: datetime, scorer: Scorer) -> Polled:
    if fetched.body is None:
        await in_thread(note_success, source, now, UNCHANGED, source.etag, source.modified)
        return Polled()
    feed = await read_apart(fetched.body, fetched.content_type, fetched.address, is_packed=fetched.is_packed)
    reading = await in_thread(intake.read, source, feed, now)
    # Before what would be paid for twice.
    if reading.wanted and not await holding.renew():
        return Polled(problem=ANOTHER)
    judged = await in_scoring_thread(intake.judge, source, reading, scorer)
    tally = await in_thread(intake.store, source, reading, judged)
    # After the intake: had that failed, the validators would hide the same feed next time.
    await in_thread(note_success, source, now, str(tally) or UNCHANGED, fetched.etag, fetched.modified)
    return Polled(tally)


async def _failed(source: Source, now: datetime, reason: str, retry_after_s: int = 0) -> Polled:
    try:
        await in_thread(note_failure, source, now, reason, retry_after_s)
    except (Error, Overloaded) as error:
        logger.warning("What is wrong with %s could not be noted: %s", source, error)
    return Polled(problem=reason)
