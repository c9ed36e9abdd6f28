"""Stopping has a deadline: a database that stands still must not keep a process that was told to end."""

from __future__ import annotations

import logging
import os
import threading

logger = logging.getLogger(__name__)

_watching: threading.Thread | None = None


def end_within(seconds: float) -> None:
    """Or end at once, whatever is still waited for. Asked again, the first deadline stays."""
    global _watching
    if _watching is None:
        # Threads that wait for the database would be joined at the very end, so it is not enough to give up.
        _watching = threading.Timer(seconds, _end, (seconds,))
        _watching.daemon = True
        _watching.start()


def _end(seconds: float) -> None:
    logger.error(
        "Stopping took longer than %g s, as when the database stands still: ended as by kill -9. "
        "What was acknowledged stays; the last uses of keys may be missing.",
        seconds,
    )
    os._exit(1)
