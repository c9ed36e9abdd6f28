"""When a story was published, as far as a feed can be believed."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta

# A feed may keep months of stories; what is older than this is no news when it is first seen.
OLDEST = timedelta(days=7)


def read_time(parsed: tuple[int, ...] | None) -> int | None:
    """Milliseconds of what feedparser made of a date, None where it made none."""
    if parsed is None:
        return None
    try:
        at_s = calendar.timegm(parsed)
        datetime.fromtimestamp(at_s, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return at_s * 1000


def published_at(claimed_ms: int | None, polled_at: datetime) -> datetime | None:
    """Without a date it is new now; a date to come is brought back to now; None for what is too old."""
    if claimed_ms is None:
        return polled_at
    claimed = datetime.fromtimestamp(claimed_ms / 1000, UTC)
    if claimed < polled_at - OLDEST:
        return None
    return min(claimed, polled_at)
