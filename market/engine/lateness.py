"""How far a process may be behind in reading what came for it. Pure."""

from __future__ import annotations

from math import inf

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
