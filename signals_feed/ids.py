"""The ids of signals as clients write them."""

from __future__ import annotations

from uuid import UUID

NO_SUCH_SIGNAL = "There is no signal with this id. GET /api/signals?status=all lists them."


def uuid_of(text: str) -> UUID | None:
    """Only as the feed writes it: Python would also read braces, and words before it."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None
