"""Times as venues write them: 2016-10-27T08:38:45.664613867Z."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def to_ms(text: str) -> int:
    """Truncated, never rounded up: a tick must not land in a minute that had not begun. Or ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} does not say its offset from UTC")
    return (at - EPOCH) // MILLISECOND
