"""Clocks that a change of the machine's clock, or a standstill of the machine, does not upset. The clocks
they read are parameters."""

from collections.abc import Callable
from enum import Enum
from threading import Lock

MS, S = 1_000_000, 1_000_000_000

# The machine's clock is corrected by less than this all the time; more than this is a step.
STEP = S

# A step that is undone within this time does not count.
HOLDS = 2 * S

# For this long after reading both clocks, only the monotonic one is read.
LOOK = 20 * MS

# A source whose own time differs from a clock by no more than this confirms it.
BELIEVED_MS = 5_000

# After a step, a source that confirmed the market's time within HEARD before it is waited for until AWAITED.
HEARD, AWAITED = 60 * S, 30 * S

# Stored times that are further ahead than this are ignored.
MOST_AHEAD = 3600 * S


class ClockChange(Enum):
    """How the market's time reacted to a step of the machine's clock."""

    FOLLOWED = "the market goes on from the new time"
    SLOWED = "the market's time goes at half speed until they meet"
    KEPT = "a source's own times say that the machine's clock is wrong"
    MET = "both clocks agree again"


class SteadyClock:
    """The machine's time, except that it never goes back. After a step of the machine's clock it keeps its
    own time if a source with a clock of its own agrees with that. Otherwise it follows a step ahead, and
    after a step back it runs at half speed until the machine's clock has caught up."""

    def __init__(
        self,
        machine: Callable[[], int],
        monotonic: Callable[[], int],
        on_change: Callable[[ClockChange, int], None] = lambda change, step_ms: None,
    ) -> None:
        """Both clocks are in nanoseconds. `on_change` is called once for each change, with its step in
        milliseconds."""
        self._machine, self._monotonic, self._on_change = machine, monotonic, on_change
        self._looked, self._now = monotonic(), machine()
        self._base = self._now - self._looked
        """How far `_now` is ahead of the monotonic clock; this holds until `_straight_until`."""
        self._straight_until = 0
        self._is_straight = self._is_slowed = False
        self._led: tuple[int, int] | None = None
        """The last time that another process's clock reported, and when it was received."""
        self._apart = 0
        """How far that clock is ahead of the machine's."""
        self._since: int | None = None
        """When the undecided step was first seen."""
        self._stepped = self._before = 0
        self._kept: int | None = None
        """How far the machine's clock is ahead of this one, where the machine's was found wrong."""
        self._agreed = -HEARD
        """When a source last confirmed this clock."""
        self._looking = Lock()
        self.off_ms = 0
        """How far this clock is ahead of the machine's, after a step."""
        self.steps = 0

    def now_ms(self) -> int:
        looked = self._monotonic()
        if looked < self._straight_until:
            return (looked + self._base) // MS
        with self._looking:
            return self._look() // MS

    def hear(self, time_ms: int, at_ms: int) -> None:
        """A source with a clock of its own reports `time_ms` while this clock shows `at_ms`."""
        lag_ms = time_ms - at_ms
        if -BELIEVED_MS <= lag_ms <= BELIEVED_MS:
            if not self.off_ms or abs(lag_ms) < abs(lag_ms + self.off_ms):
                self._agreed = self._looked
        elif lag_ms > 0 and self.off_ms:
            self._weigh(time_ms)

    def _weigh(self, time_ms: int) -> None:
        """A time in this clock's future may be right by the clock as it was before the step, or as it would
        be if it had followed."""
        with self._looking:
            now, time = self._look(), time_ms * MS
            machine, before = now - self.off_ms * MS, self._looked + self._before
            if time - now <= BELIEVED_MS * MS:
                return
            if self._is_slowed and abs(time - before) <= BELIEVED_MS * MS:
                self._is_slowed, self._kept = False, machine - before
                self._go_on(before, machine, is_straight=True)
                self._on_change(ClockChange.KEPT, (machine - before) // MS)
            elif abs(time - machine) <= BELIEVED_MS * MS and self._agreed < self._stepped:
                self._go_on(self._follow(machine, now), machine, is_straight=True)

    def lead(self, at_ms: int) -> None:
        """Called regularly with the time of another process's clock, which this clock follows."""
        reported, heard = at_ms * MS, self._monotonic()
        before, self._led = self._led, (reported, heard)
        if before is None:
            return
        went_on, passed = reported - before[0], heard - before[1]
        # Times that waited to be read arrive faster or later than they were sent, and do not show the
        # present.
        if went_on // 2 <= passed <= 2 * went_on + 2 * S:
            apart = reported - self._machine()
            self._apart = apart if abs(apart) > STEP else 0

    def go_on_from(self, known_ms: int) -> None:
        """Prices are known up to `known_ms`, because an earlier process was ahead of the machine's clock."""
        with self._looking:
            now = self._look()
            ahead = known_ms * MS - now
            if BELIEVED_MS * MS < ahead <= MOST_AHEAD:
                self._slow(self._looked, known_ms * MS, -ahead)
                self._go_on(known_ms * MS, now, is_straight=False)

    def _look(self) -> int:
        looked, machine = self._read()
        passed, self._looked = looked - self._looked, looked
        went_on = self._now + passed
        off = machine - went_on
        if off > STEP or (off < -STEP and not self._is_slowed):
            now = self._decide(looked, went_on, off)
            return self._go_on(now, machine, is_straight=not self._is_slowed)
        # The time never goes back.
        least = went_on if self._is_straight else self._now + passed // 2
        self._since = None
        if machine >= least or not self._is_slowed:
            self._meet()
        return self._go_on(max(least, machine), machine, is_straight=machine >= least)

    def _read(self) -> tuple[int, int]:
        """Both clocks at the same moment, unless the process is interrupted between them three times."""
        for _ in range(3):
            looked, machine = self._monotonic(), self._machine() + self._apart
            if self._monotonic() - looked < MS:
                break
        return looked, machine

    def _go_on(self, now: int, machine: int, *, is_straight: bool) -> int:
        self._now, self._base = now, now - self._looked
        self._is_straight = is_straight
        self._straight_until = self._looked + LOOK if is_straight else 0
        off = now - machine
        self.off_ms = off // MS if self._is_slowed or abs(off) > STEP else 0
        return now

    def _decide(self, looked: int, went_on: int, off: int) -> int:
        if self._kept is not None and abs(off - self._kept) <= STEP:
            self._since, self._kept = None, off
            return went_on
        if self._since is None:
            self._since = self._stepped = looked
            self._is_slowed = False
        if looked - self._since < HOLDS or self._is_awaited(looked - self._since):
            return went_on
        if self._agreed >= self._since:
            self.steps += 1
            self._since, self._kept = None, off
            self._on_change(ClockChange.KEPT, off // MS)
        elif off > 0:
            return self._follow(went_on + off, went_on)
        else:
            self._slow(looked, went_on, off)
        return went_on

    def _is_awaited(self, held: int) -> bool:
        """Whether a source that confirmed this clock until the step has been silent since."""
        return self._stepped - HEARD < self._agreed < self._stepped and held < AWAITED

    def _follow(self, machine: int, now: int) -> int:
        self.steps += 1
        self._since = self._kept = None
        self._on_change(ClockChange.FOLLOWED, (machine - now) // MS)
        return machine

    def _slow(self, looked: int, now: int, off: int) -> None:
        self.steps += 1
        self._since = self._kept = None
        self._is_slowed, self._before = True, now - looked
        self._on_change(ClockChange.SLOWED, off // MS)

    def _meet(self) -> None:
        if self._is_slowed or self._kept is not None:
            self._is_slowed, self._kept = False, None
            self._on_change(ClockChange.MET, 0)


class OwnTime:
    """Seconds for which this process ran, from a clock that is read often. A step beyond the longest possible
    is cut, because the machine stood still for the rest, and others are not late by that."""

    def __init__(self, clock: float, longest_step_s: float) -> None:
        self._clock, self._longest_step_s, self.now = clock, longest_step_s, 0.0

    def pass_to(self, clock: float) -> float:
        self.now += min(clock - self._clock, self._longest_step_s)
        self._clock = clock
        return self.now
