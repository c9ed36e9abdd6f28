"""When a source is asked next: by its interval, and ever more rarely while it fails."""

from __future__ import annotations

from datetime import timedelta

LONGEST = timedelta(hours=24)
# Servers tell clients to stay away for as long as they like; a day is as long as we believe.
MOST_DOUBLINGS = 12


def pause(interval_s: int, failures: int, retry_after_s: int = 0) -> timedelta:
    """The interval, doubled with each failure in a row up to a day; never less than the server asked for."""
    wanted = timedelta(seconds=interval_s)
    if failures:
        wanted = max(wanted, min(wanted * 2 ** min(failures, MOST_DOUBLINGS), LONGEST))
    return max(wanted, min(timedelta(seconds=retry_after_s), LONGEST))
