"""A log line for what may happen a thousand times a second: at once, then every ten seconds at most."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

EVERY_S = 10.0


class Repeated:
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
