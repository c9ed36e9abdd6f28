"""What was already done for a request when the application takes it."""

import time
from typing import Any, NamedTuple

# In the extensions of its scope.
EXTENSION = "tickwire.begun"


class Begun(NamedTuple):
    at_s: float
    """By the performance counter."""
    standing: Any
    """Of its account, which has been counted."""


def begun(scope: dict[str, Any]) -> Begun | None:
    return scope.get("extensions", {}).get(EXTENSION)  # type: ignore[no-any-return]


def begun_at(scope: dict[str, Any]) -> float:
    before = begun(scope)
    return time.perf_counter() if before is None else before.at_s
