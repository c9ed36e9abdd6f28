"""Whether two answers say the same: the same fields, the same values, times as moments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

TIMES = ("time", "timestamp")


def meaning(body: Any) -> Any:
    """Times may be written with more or fewer digits of a second; everything else must be equal."""
    match body:
        case dict():
            return {
                name: datetime.fromisoformat(value) if name in TIMES else meaning(value)
                for name, value in body.items()
            }
        case list():
            return [meaning(item) for item in body]
        case _:
            return body
