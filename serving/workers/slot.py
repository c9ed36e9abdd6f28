"""The slot of one worker, across the processes that fill it one after the other."""

from typing import Literal

# A worker that served for this long was sound: the one that follows it starts at once.
SOUND_AFTER_S = 30.0
FIRST_DELAY_S, LONGEST_DELAY_S = 1.0, 15.0

# A worker reports each second that its loop turns. One that is silent for longer serves no client.
SILENT_AFTER_S = 30.0

# A start that takes this long is logged.
SLOW_START_S = 60.0
LONGEST_STEP_S = 2.0
State = Literal["empty", "starting", "serving", "stopping", "leaving"]
"""A worker that is "leaving" is not replaced: its successor serves already."""


class WorkerSlot:
    def __init__(self, number: int, now: float) -> None:
        self.number = number
        self.state: State = "empty"
        self.failures = 0
        """How many processes in a row ended before they had proved sound."""
        self._since = self._heard_at = now
        self._due_at = now
        self._must_end_by = now

    def is_due(self, now: float) -> bool:
        return self.state == "empty" and now >= self._due_at

    def has_to_be_killed(self, now: float) -> bool:
        """Whether it hangs: it has fallen silent, or does not end although it should."""
        if self.is_told_to_end:
            return now >= self._must_end_by
        return self.state == "serving" and now - self._heard_at > SILENT_AFTER_S

    def is_slow_to_start(self, now: float) -> bool:
        """True once for each SLOW_START_S that a start takes."""
        if self.state != "starting" or now - self._heard_at < SLOW_START_S:
            return False
        self._heard_at = now
        return True

    def age_s(self, now: float) -> float:
        """How long it has been in its present state."""
        return now - self._since

    def started(self, now: float) -> None:
        self._become("starting", now)

    def serves(self, now: float) -> None:
        self._become("serving", now)

    def heard(self, now: float) -> None:
        self._heard_at = now

    @property
    def is_told_to_end(self) -> bool:
        return self.state in ("stopping", "leaving")

    def stops(self, now: float, within_s: float) -> None:
        if not self.is_told_to_end:
            self._must_end_by = now + within_s
            self._become("stopping", now)

    def leaves(self, now: float, within_s: float) -> None:
        self.stops(now, within_s)
        self.state = "leaving"

    def is_sound(self, now: float) -> bool:
        return self.state == "serving" and self.age_s(now) >= SOUND_AFTER_S

    def ended(self, now: float) -> float:
        """How long the place stays empty."""
        if self.is_sound(now) or self.is_told_to_end:
            self.failures = 0
            delay_s = 0.0
        else:
            delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2**self.failures)
            self.failures += 1
        self._due_at = now + delay_s
        self._become("empty", now)
        return delay_s

    def _become(self, state: State, now: float) -> None:
        self.state, self._since, self._heard_at = state, now, now
