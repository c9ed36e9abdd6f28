"""Whether what was learnt from events can be relied on: how old it is, and whether the database answers."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings

from core.deadlines import patient
from core.steady_clock import OwnTime
from core.threads import in_reserved_thread

T = TypeVar("T")
POLL_S = 0.25

# Twice what lies between two looks at the clock: more is a standstill, of the machine or of our own loop.
LONGEST_STEP_S = 2 * POLL_S


class OutboxTrust:
    # If nothing could be read for this long, what was learnt from events no longer counts.
    STALE_AFTER_S = patient(1.5)
    # While the database is away and nobody can know better, it counts for this long.
    TRUSTED_FOR_S: float = settings.KEYS_TRUSTED_FOR_S

    def __init__(self) -> None:
        self.is_running = False
        self.read_at = float("-inf")
        """All events before this moment are known."""
        self._unanswered: deque[float] = deque()
        """When the questions were asked that the database has not answered, the oldest first."""
        self._own_time = OwnTime(time.monotonic(), LONGEST_STEP_S)
        self._has_failed = False

    def begin(self) -> None:
        self.is_running, self.read_at = True, time.monotonic()
        self._has_failed, self._unanswered = False, deque()

    def end(self) -> None:
        self.is_running, self.read_at = False, float("-inf")

    @property
    def asked_at(self) -> float | None:
        """Since when the oldest unanswered question has waited, in our own time."""
        return self._unanswered[0] if self._unanswered else None

    def own_now(self) -> float:
        return self._own_time.pass_to(time.monotonic())

    async def keep_time(self) -> None:
        while True:
            self.own_now()
            await asyncio.sleep(POLL_S)

    @property
    def age_s(self) -> float:
        """For how long no event could be read."""
        return time.monotonic() - self.read_at

    @property
    def is_current(self) -> bool:
        return time.monotonic() - self.read_at < self.STALE_AFTER_S

    @property
    def is_database_away(self) -> bool:
        """It refuses, or has not answered for so long that nobody should wait for it."""
        asked_at = self.asked_at
        is_silent = asked_at is not None and self.own_now() - asked_at >= self.STALE_AFTER_S
        return self.is_running and (self._has_failed or is_silent)

    @property
    def may_be_trusted(self) -> bool:
        """Whether what was learnt from events counts: it is current, or the best there is. While a question
        is unanswered, nobody can tell yet whether the database is away."""
        is_asked = self.is_database_away or self.asked_at is not None
        return self.is_current or (is_asked and self.age_s < self.TRUSTED_FOR_S)

    @property
    def is_trust_over(self) -> bool:
        """Nothing could be read for so long that what was learnt before no longer counts."""
        return self.is_running and not self.is_current and self.age_s >= self.TRUSTED_FOR_S

    async def ask(self, question: Callable[[], T]) -> T:
        """A caller that stops waiting leaves the question to its thread: it still counts as unanswered."""
        unanswered, asked = self._unanswered, asyncio.ensure_future(in_reserved_thread(question))
        unanswered.append(self.own_now())

        def answered(asked: asyncio.Future[T]) -> None:
            # One thread asks, so answers come in the order of the questions.
            unanswered.popleft()
            if unanswered is self._unanswered:
                self._has_failed = asked.cancelled() or asked.exception() is not None

        asked.add_done_callback(answered)
        return await asyncio.shield(asked)
