"""A trouble that lasts: each cause is told once, then once a minute with how often, and once at its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

AGAIN_S = 60.0


class Trouble:
    """Told by those whom it meets, however often; `text` says what it means, and then comes the cause."""

    def __init__(
        self, logger: logging.Logger, text: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger, self._text, self._clock = logger, text, clock
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
        self._logger.warning("%s: %s%s", self._text, error, often)

    def over(self) -> None:
        """It works. Cheap where nothing was wrong, so it may be said after each success."""
        if self._began_s is None:
            return
        lasted_s = self._clock() - self._began_s
        self._logger.warning("%s: over after %.0f s", self._text, lasted_s)
        self._began_s = None
