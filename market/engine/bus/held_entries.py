"""How much the stream holds, and from which number on it has to stay."""

from collections import deque

import msgspec

from .journal import KEEP_MS

# A reader that is further behind loads from the database: some minutes of a busy market.
MAX_ENTRIES, KEPT_BYTES = 50_000, 32 * 1024 * 1024

# What has to stay is at most so much; beyond it the engine takes no more ticks.
MOST_BYTES = 256 * 1024 * 1024

# What Redis needs for an entry beside what is in it.
ENTRY_BYTES = 48
KEEP_S, STEP_S = KEEP_MS / 1000, 10.0


class Step(msgspec.Struct):
    """Entries that follow each other, and go together."""

    began_s: float
    last: int
    ended_s: float
    size: int


class HeldEntries:
    """Nothing that is younger than 120 s goes, and nothing that the database does not hold. The rest goes,
    oldest first, where there is too much of it. Times are those of one clock that never goes back."""

    def __init__(self, max_entries: int = MAX_ENTRIES, kept_bytes: int = KEPT_BYTES) -> None:
        self._max_entries, self._kept_bytes = max_entries, kept_bytes
        self._steps = deque[Step]()
        self._size = self._last = 0
        self.first = 0
        """Before this number nothing has to stay."""

    def begin(self, last: int, size: int, now_s: float) -> None:
        """What is there up to `last` came nobody knows when; of it, `size` waits for the database."""
        self._steps = deque([Step(now_s, last, now_s, size)])
        self._size, self._last, self.first = size, last, 0

    def add(self, number: int, size: int, now_s: float) -> None:
        size += ENTRY_BYTES
        self._size, self._last = self._size + size, number
        step = self._steps[-1] if self._steps else None
        if step is not None and now_s - step.began_s < STEP_S:
            step.last, step.ended_s, step.size = number, now_s, step.size + size
        else:
            self._steps.append(Step(now_s, number, now_s, size))

    def trim(self, written: int, now_s: float, *, all_that_may: bool = False) -> None:
        """`written` is the last number that the database holds."""
        steps = self._steps
        while (
            steps
            and (
                all_that_may
                or self._size > self._kept_bytes
                or self._last - self.first + 1 > self._max_entries
            )
            and steps[0].last <= written
            and now_s - steps[0].ended_s > KEEP_S
        ):
            step = steps.popleft()
            self._size -= step.size
            self.first = step.last + 1

    @property
    def are_too_many(self) -> bool:
        """What has to stay alone, once the rest was trimmed."""
        return self._size > MOST_BYTES
