"""What nobody catches is a line of the log too, without secrets: Python would print it as it is."""

import logging
import sys
import threading
from types import TracebackType

logger = logging.getLogger(__name__)


def log_uncaught() -> None:
    """For processes that serve: somebody at a terminal would rather see the traceback itself."""
    sys.excepthook = _log_end
    threading.excepthook = _log_thread


def _log_end(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, at)
    else:
        logger.critical("This process ends by a fault: %s", error, exc_info=(kind, error, at))


def _log_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None and told.exc_type is not SystemExit:
        name = told.thread.name if told.thread is not None else "unknown"
        info = (told.exc_type, told.exc_value, told.exc_traceback)
        logger.error("A thread ended by a fault: %s", told.exc_value, exc_info=info, extra={"of": name})
