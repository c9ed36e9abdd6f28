"""Times as files write them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what a time without an offset is counted from
MILLISECOND = timedelta(milliseconds=1)
# Milliseconds of 1973 and of the year 5138: what is below are seconds, what is above microseconds.
LEAST, MOST = 10**11, 10**14


def iso_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 time; without an offset it is UTC."""
    at = datetime.fromisoformat(text)
    return (at - (EPOCH if at.tzinfo else NAIVE_EPOCH)) // MILLISECOND


def epoch_ms(stamps: Sequence[str]) -> list[int]:
    """Whole numbers: milliseconds, or by their magnitude microseconds."""
    values = [int(stamp) for stamp in stamps]
    if min(values) < LEAST:
        raise ValueError("neither milliseconds nor microseconds")
    if max(values) < MOST:
        return values
    return [value // 1000 if value >= MOST else value for value in values]
