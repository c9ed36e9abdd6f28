"""How many connections each worker has, where all can read it: one with more leaves the next to others."""

import multiprocessing
from collections.abc import MutableSequence

# By how many connections a worker may be ahead of the one with the fewest: AHEAD, and 1 in ONE_IN of those.
AHEAD, ONE_IN = 2, 20

# A worker shows itself ten times a second. The others do not wait for one that has been silent for longer.
PRESENT_S = 0.3
NEVER = float("-inf")
Numbers = MutableSequence[float]


class Place:
    """Of one worker among all of them. Only it writes there, so no lock is needed. Times are those of
    the machine's steady clock, which all processes share."""

    def __init__(self, opened: Numbers, seen_at: Numbers, index: int) -> None:
        self._opened, self._seen_at, self.index = opened, seen_at, index
        self._others = [other for other in range(len(opened)) if other != index]

    def show(self, opened: int, now: float) -> None:
        """This worker accepts connections, and has `opened`."""
        self._opened[self.index] = opened
        self._seen_at[self.index] = now

    def leave(self) -> None:
        """It accepts no connections, so the others do not wait for it."""
        self._seen_at[self.index] = NEVER

    def is_ahead(self, now: float) -> bool:
        """Whether another worker with fewer connections is there to take the next one."""
        present_since, opened, seen_at = now - PRESENT_S, self._opened, self._seen_at
        present = [opened[other] for other in self._others if seen_at[other] > present_since]
        if not present:
            return False
        fewest = min(present)
        return opened[self.index] > fewest + AHEAD + fewest // ONE_IN


class Places:
    """In memory that processes share. While workers are replaced, up to three share one slot."""

    def __init__(self, workers: int) -> None:
        # It is given to spawned processes, however other code here starts its own.
        spawn = multiprocessing.get_context("spawn")
        self._opened, self._seen_at = spawn.RawArray("d", 3 * workers), spawn.RawArray("d", 3 * workers)
        self._free = set(range(3 * workers))
        for index in self._free:
            self._seen_at[index] = NEVER

    def take(self) -> Place:
        if not self._free:
            raise OSError("too many earlier workers have not ended yet")
        index = min(self._free)
        self._free.remove(index)
        return Place(self._opened, self._seen_at, index)

    def give_back(self, place: Place) -> None:
        """Its worker has ended, perhaps without leaving."""
        place.leave()
        self._free.add(place.index)
