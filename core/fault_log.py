"""Log lines about faults that last or repeat. Each cause is logged once, and then from time to time with a
count, so that they cannot fill the disk."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from core.redis.replies import is_of_full

IS_FULL = "Redis has reached its maxmemory and refuses writes"


def described(error: object) -> str:
    # A full Redis is reported with the line of the script, which varies.
    if isinstance(error, BaseException) and is_of_full(error):
        return IS_FULL
    return str(error) or type(error).__name__


LOG_LASTING_EVERY_S = 60.0


class Fault(Protocol):
    logger: logging.Logger

    def tell(self, error: object) -> None: ...
    def over(self) -> None: ...


class EachFault:
    """Logs every fault: for work that is done seldom."""

    def __init__(self, logger: logging.Logger, text: str, level: int = logging.WARNING) -> None:
        self.logger, self._text, self._level = logger, text, level

    def tell(self, error: object) -> None:
        self.logger.log(self._level, "%s: %s", self._text, described(error))

    def over(self) -> None:
        """Nothing is logged."""


class LastingFault:
    """Logs a fault once a minute while it lasts, and when it is over. `text` says what it means."""

    def __init__(
        self,
        logger: logging.Logger,
        text: str,
        level: int = logging.WARNING,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logger, self._text, self._level, self._clock = logger, text, level, clock
        self.forget()

    def forget(self) -> None:
        self._logged_s: dict[str, float] = {}
        """When each cause was last logged."""
        self._unlogged = 0
        self._began_s: float | None = None
        """None while all is well."""

    def tell(self, error: object) -> None:
        now, cause = self._clock(), type(error).__name__
        last_s = self._logged_s.get(cause)
        if last_s is not None and now - last_s < LOG_LASTING_EVERY_S:
            self._unlogged += 1
            return
        self._logged_s[cause] = now
        if self._began_s is None:
            self._began_s = now
        often = f" ({self._unlogged} times more since it was last logged)" if self._unlogged else ""
        self._unlogged = 0
        self.logger.log(self._level, "%s: %s%s", self._text, described(error), often)

    def over(self) -> None:
        """Call it after each success: it costs nothing while all is well."""
        if self._began_s is None:
            return
        lasted_s = self._clock() - self._began_s
        self.logger.log(self._level, "%s: over after %.0f s", self._text, lasted_s)
        self._began_s = None


LOG_REPEATED_EVERY_S = 10.0


class RepeatedWarning:
    def __init__(
        self, logger: logging.Logger, text: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger, self._text, self._clock = logger, text, clock
        self._lock = Lock()
        self.forget()

    def forget(self) -> None:
        self._count = 0
        self._told_at = float("-inf")

    def tell(self, *details: object, **fields: object) -> None:
        """From any thread. The text begins with `%d`, for the number of faults since the last line."""
        if count := self._counted():
            self._logger.warning(self._text, count, *details, extra={"count": count, **fields})

    def _counted(self) -> int:
        """How many there were since the last line; 0 if it is too early for the next one."""
        with self._lock:
            self._count += 1
            now, count = self._clock(), self._count
            if now - self._told_at < LOG_REPEATED_EVERY_S:
                return 0
            self._told_at, self._count = now, 0
            return count


logger = logging.getLogger(__name__)


class UnavailableLog:
    """At most one line in ten seconds for each kind of refusal and cause."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.kinds: dict[tuple[str, str], RepeatedWarning] = {}

    def tell(self, code: str, request: str, error: object) -> None:
        """`request` is the id of the request, or what Django says of the page."""
        kind = (code, type(error).__name__)
        if kind not in self.kinds:
            text = f"%d answered with 503 {code}, the last one %s: %s"
            # Another thread may have come first.
            self.kinds.setdefault(kind, RepeatedWarning(logger, text, clock=self._clock))
        self.kinds[kind].tell(request, described(error), code=code, status=503)


unavailable = UnavailableLog()


MOST_FAULTS = 1_000


class UnexpectedFaults:
    """Our own faults: each in full when it is new, because a client may trigger one again and again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        self._logged_s: dict[tuple[str, str], float] = {}
        self._left_out: dict[tuple[str, str], int] = {}

    def left_out(self, error: BaseException) -> int | None:
        """The count since it was last logged; None if it should not be logged now."""
        kind, now = (type(error).__name__, place_of(error)), self._clock()
        told_s = self._logged_s.get(kind)
        if told_s is not None and now - told_s < LOG_REPEATED_EVERY_S:
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return None
        if len(self._logged_s) >= MOST_FAULTS:
            self.forget()
        self._logged_s[kind] = now
        return self._left_out.pop(kind, 0)


def place_of(error: BaseException) -> str:
    """Where it was raised."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"


unexpected = UnexpectedFaults()


class FaultsOfPages(logging.Filter):
    """Replaces the traceback that Django logs for each page that is answered with 503, and leaves out that of
    a fault which was logged a moment ago."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if getattr(record, "status_code", None) == 503:
            unavailable.tell("page", record.getMessage(), error or "no fault was raised")
            return False
        if error is None:
            return True
        left_out = unexpected.left_out(error)
        if left_out:
            record.left_out = left_out
        return left_out is not None
