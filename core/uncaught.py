"""Uncaught exceptions become log lines without secrets; Python would print them as they are."""

import logging
import sys
import threading
from types import TracebackType

logger = logging.getLogger(__name__)


def log_uncaught() -> None:
    """For processes that serve. At a terminal, the plain traceback is more useful."""
    sys.excepthook = _log_end
    threading.excepthook = _log_thread


def _log_end(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, at)
    else:
        logger.critical("This process ends by a fault: %s", error, exc_info=(kind, error, at))


def _log_thread(end: threading.ExceptHookArgs) -> None:
    if end.exc_value is not None and end.exc_type is not SystemExit:
        name = end.thread.name if end.thread is not None else "unknown"
        info = (end.exc_type, end.exc_value, end.exc_traceback)
        logger.error("A thread ended by a fault: %s", end.exc_value, exc_info=info, extra={"of": name})
