"""Log lines about requests that were answered with 503: while the database is away each is, strangers' too,
and a line for each would be a way to fill the disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from accounts.repeated import Repeated

logger = logging.getLogger(__name__)


class Unavailable:
    """One line for each kind of refusal and of cause, and then one in ten seconds at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], Repeated] = {}

    def tell(self, code: str, request: str, error: object) -> None:
        """`request` says which one it was: its id, or the path of a page."""
        kind = (code, type(error).__name__)
        if kind not in self._kinds:
            text = f"%d answered with 503 {code}, the last one %s: %s"
            self._kinds[kind] = Repeated(logger, text, clock=self._clock)
        self._kinds[kind].tell(request, error)


unavailable = Unavailable()


class PagesUnavailable(logging.Filter):
    """Of what Django says of each page that could not be made, with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) != 503:
            return True
        error = record.exc_info[1] if record.exc_info else "no fault was raised"
        unavailable.tell("page", record.getMessage(), error)
        return False
