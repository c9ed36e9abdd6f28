"""Who polls a source: on any number of processes, whoever moves its next poll on."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F

from news.models import Source

from .schedule import pause

# Longer than a poll can take. If the one who claimed it dies, the source is free again after this.
CLAIM = timedelta(minutes=2)


def claim_due(now: datetime, most: int) -> list[Source]:
    due = list(Source.objects.due(now)[:most])
    return [source for source in due if claim(source, now)]


def claim(source: Source, now: datetime) -> bool:
    """The row count decides: of many who saw it due, one moves it."""
    seen = Source.objects.filter(pk=source.pk, next_poll_at=source.next_poll_at)
    return seen.update(next_poll_at=now + CLAIM) == 1


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
