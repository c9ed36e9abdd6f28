"""Whether this process has so many more streams than another, as after a restart of that one, that some
of its clients should reconnect."""

import logging
from collections.abc import Sequence

logger = logging.getLogger(__name__)
TIMES, MORE = 2, 50
FOR_S, A_LOOK = 60.0, 5
# Clients that come back here, however often they are asked, know no other way.
HELPED, REST_S = 0.9, 3600.0

# While Redis is away the others are not seen, and when it comes back it may have forgotten what they have.
UNSEEN_S = 10.0


class Spread:
    """Asked once a second."""

    def __init__(self) -> None:
        self._looked_at = self._uneven_at = self._rests_until = float("-inf")
        self._due_at: float | None = None
        self._left = 0
        """How many may still be asked to go."""
        self._before = float("inf")
        """How many were too many when some were last asked."""

    def surplus(self, here: int, able: int, others: Sequence[int], now: float) -> int:
        """How many clients to ask now, of those that are `able` to go on elsewhere."""
        if now - self._looked_at > UNSEEN_S:
            self._due_at, self._left = None, 0
        self._looked_at = now
        least, mean = min(others, default=here), -(-(here + sum(others)) // (1 + len(others)))
        too_many = max(0, here - mean)
        self._left = min(self._left, too_many)
        is_even = here <= TIMES * least or here - least <= MORE
        if not is_even:
            self._uneven_at = now
        elif now - self._uneven_at >= FOR_S:
            # Sooner, those that were asked may only be on their way back here.
            self._before = float("inf")
        if is_even or now < self._rests_until:
            self._due_at = None
        elif self._due_at is None or self._left:
            self._due_at = now + FOR_S
        elif now >= self._due_at:
            self._begin(too_many, able, now)
        asked = min(A_LOOK, self._left)
        self._left -= asked
        return asked

    def _begin(self, too_many: int, able: int, now: float) -> None:
        if too_many > HELPED * self._before:
            self._rests_until, self._before = now + REST_S, float("inf")
            return
        self._left, self._before = min(too_many, able), too_many
        self._due_at = now + FOR_S
        text = "This process has %d streams too many: clients that can go on elsewhere are asked to reconnect"
        logger.info(text, too_many)
