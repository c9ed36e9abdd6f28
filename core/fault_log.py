"""Log lines about faults that last or repeat: each cause is told once, then now and then with how often,
so that nobody can fill the disk with them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

AGAIN_S = 60.0


class Fault(Protocol):
    logger: logging.Logger

    def tell(self, error: object) -> None: ...

    def over(self) -> None: ...


class EachFault:
    """Told each time, where the times are far apart."""

    def __init__(self, logger: logging.Logger, text: str, level: int = logging.WARNING) -> None:
        self.logger, self._text, self._level = logger, text, level

    def tell(self, error: object) -> None:
        self.logger.log(self._level, "%s: %s", self._text, error)

    def over(self) -> None:
        """Nothing is said of it."""


class LastingFault:
    """Told by those whom it meets, however often; `text` says what it means, and then comes the cause."""

    def __init__(
        self, logger: logging.Logger, text: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.logger, self._text, self._clock = logger, text, clock
        self._told_s: dict[str, float] = {}
        """When each cause was told last."""
        self._untold = 0
        self._began_s: float | None = None
        """None while all is well, or nobody has been told otherwise."""

    def tell(self, error: object) -> None:
        now, cause = self._clock(), type(error).__name__
        last_s = self._told_s.get(cause)
        if last_s is not None and now - last_s < AGAIN_S:
            self._untold += 1
            return
        self._told_s[cause] = now
        if self._began_s is None:
            self._began_s = now
        often = f" ({self._untold} times more since it was last told)" if self._untold else ""
        self._untold = 0
        self.logger.warning("%s: %s%s", self._text, error, often)

    def over(self) -> None:
        """It works. Cheap where nothing was wrong, so it may be said after each success."""
        if self._began_s is None:
            return
        lasted_s = self._clock() - self._began_s
        self.logger.warning("%s: over after %.0f s", self._text, lasted_s)
        self._began_s = None


EVERY_S = 10.0


class RepeatedWarning:
    def __init__(
        self, logger: logging.Logger, text: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger, self._text, self._clock = logger, text, clock
        self._count = 0
        self._told_at = float("-inf")

    def tell(self, *details: object) -> None:
        """The text begins with the number of times since the last line."""
        self._count += 1
        now = self._clock()
        if now - self._told_at >= EVERY_S:
            self._logger.warning(self._text, self._count, *details)
            self._told_at, self._count = now, 0


logger = logging.getLogger(__name__)


class UnavailableLog:
    """One line for each kind of refusal and of cause, and then one in ten seconds at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[tuple[str, str], RepeatedWarning] = {}

    def tell(self, code: str, request: str, error: object) -> None:
        """`request` says which one it was: its id, or the path of a page."""
        kind = (code, type(error).__name__)
        if kind not in self._kinds:
            text = f"%d answered with 503 {code}, the last one %s: %s"
            self._kinds[kind] = RepeatedWarning(logger, text, clock=self._clock)
        self._kinds[kind].tell(request, error)


unavailable = UnavailableLog()


class PagesUnavailable(logging.Filter):
    """Of what Django says of each page that could not be made, with a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", None) != 503:
            return True
        error = record.exc_info[1] if record.exc_info else "no fault was raised"
        unavailable.tell("page", record.getMessage(), error)
        return False
