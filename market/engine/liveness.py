"""Whether this process hears the engine, and how far it may be behind in reading what came for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from math import inf

logger = logging.getLogger(__name__)

# An engine says each second how it is doing.
SILENT_S = 2.25
LOOK_S = 0.25

# Who looks so late was held up itself: what came meanwhile has not been read yet.
HELD_UP_S = 1.0

# And so late, that what came meanwhile is old: a machine that slept, a process that was stopped.
STOOD_STILL_S = 5.0


class EngineLiveness:
    def __init__(self, told: Callable[[bool], None]) -> None:
        self._told = told
        self.is_heard = True
        self.losses = 0
        # Nobody looks before it starts: what is heard then is not late.
        self._heard_s, self._looked_s = 0.0, inf
        self._reads_old = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.is_heard, self._reads_old = True, False
        self._heard_s = self._looked_s = time.monotonic()
        self._timer = loop.call_later(LOOK_S, self._look, loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_heard, self._looked_s = True, inf

    def heard(self, now_s: float) -> None:
        self._heard_s = now_s
        if now_s - self._looked_s > STOOD_STILL_S + LOOK_S:
            # What is heard may have waited as long: it is passed on after clients have been told.
            self.look(now_s)
        elif not self.is_heard and not self._reads_old:
            self._turn(True)

    def look(self, now_s: float) -> None:
        late_s, self._looked_s = now_s - self._looked_s - LOOK_S, now_s
        if late_s > STOOD_STILL_S:
            self._stood_still(late_s)
        elif late_s > HELD_UP_S:
            self._heard_s = max(self._heard_s, now_s - SILENT_S + LOOK_S)
        elif self._reads_old:
            self._reads_old = False
            if now_s - self._heard_s <= SILENT_S:
                self._turn(True)
        elif self.is_heard and now_s - self._heard_s > SILENT_S:
            self.losses += 1
            logger.warning("The market engine is not heard: the streams are stale")
            self._turn(False)

    def _stood_still(self, late_s: float) -> None:
        logger.warning("This process stood still for %.0f s: the streams are stale", late_s)
        self._reads_old = True
        if self.is_heard:
            self._turn(False)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(LOOK_S, self._look, loop)
        self.look(time.monotonic())

    def _turn(self, is_heard: bool) -> None:
        self.is_heard = is_heard
        self._told(is_heard)


# A look that comes later than this after the one before finds a machine that was asleep, stood still or is
# overloaded: what came meanwhile waits to be read, and still counts.
AWAY_S = 1.0


class Lateness:
    """Told of every look at the clock. For a while after a late one, what came since the look before it may
    be unread. Where all looks are late, that is still no more than one of them was."""

    def __init__(self, while_s: float) -> None:
        self._while_s = while_s
        self._looked_s = -inf
        self._late: list[tuple[float, float]] = []
        """Late looks of that while, and how late each was."""

    def look(self, now_s: float) -> float:
        """Seconds: what came longer ago than these was read. Infinite while nobody knows."""
        late_s, self._looked_s = now_s - self._looked_s, now_s
        self._late = [(at_s, each_s) for at_s, each_s in self._late if now_s - at_s < self._while_s]
        if late_s > AWAY_S:
            self._late.append((now_s, late_s))
        return max((each_s for _, each_s in self._late), default=0.0)
