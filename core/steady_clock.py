"""A clock for what must stay in order: it goes on with the time that passes, however the machine's clock is
set. Both clocks are parameters."""

from collections.abc import Callable
from enum import Enum
from threading import Lock

MS, S = 1_000_000, 1_000_000_000

# The machine's clock is corrected by less than this all the time; more than this is a step.
STEP = S

# A step that is undone within this time was none.
HOLDS = 2 * S

# Whoever looks more often than this gets the last look, carried on.
LOOK = 20 * MS

# A source whose own time is off by no more than this speaks for a clock.
BELIEVED_MS = 5_000

# A source that spoke for the market's time so lately before a step is waited for, and for how long.
HEARD, AWAITED = 60 * S, 30 * S

# The clock does not go on from times stored further ahead than this.
MOST_AHEAD = 3600 * S


class ClockChange(Enum):
    """What became of a step."""

    FOLLOWED = "the market goes on from the new time"
    SLOWED = "the market's time goes at half speed until they meet"
    KEPT = "a source's own times say that the machine's clock is wrong"
    MET = "both clocks agree again"


class SteadyClock:
    """The machine's time, never going back. After a step it stays as it was where a source with a time of
    its own agrees with that. Otherwise it follows a step ahead, and after a step back goes at half speed
    until the machine's clock has caught up."""

    def __init__(
        self,
        machine: Callable[[], int],
        monotonic: Callable[[], int],
        tell: Callable[[ClockChange, int], None] = lambda change, step_ms: None,
    ) -> None:
        """Both clocks are in nanoseconds; `tell` hears once of each change and its step in milliseconds."""
        self._machine, self._monotonic, self._tell = machine, monotonic, tell
        self._looked, self._now = monotonic(), machine()
        self._base = self._now - self._looked
        """What `_now` is ahead of the monotonic clock, until then."""
        self._straight_until = 0
        self._is_straight = self._is_slowed = False
        self._led: tuple[int, int] | None = None
        """What another process' clock said last, and when it was heard."""
        self._apart = 0
        """That clock from the machine's."""
        self._since: int | None = None
        """When a step was first seen that is not decided yet."""
        self._stepped = self._before = 0
        self._kept: int | None = None
        """The machine's clock from this one, where that was found wrong."""
        self._agreed = -HEARD
        """When a source's own time last agreed."""
        self._looking = Lock()
        self.off_ms = 0
        """This clock from the machine's, after a step."""
        self.steps = 0

    def now_ms(self) -> int:
        looked = self._monotonic()
        if looked < self._straight_until:
            return (looked + self._base) // MS
        with self._looking:
            return self._look() // MS

    def hear(self, time_ms: int, at_ms: int) -> None:
        """A source has a clock of its own, and it said this when ours said that."""
        lag_ms = time_ms - at_ms
        if -BELIEVED_MS <= lag_ms <= BELIEVED_MS:
            if not self.off_ms or abs(lag_ms) < abs(lag_ms + self.off_ms):
                self._agreed = self._looked
        elif lag_ms > 0 and self.off_ms:
            self.weigh(time_ms)

    def weigh(self, time_ms: int) -> None:
        """What is of the future by this clock may be right by the one that this was, or could have become."""
        with self._looking:
            now, time = self._look(), time_ms * MS
            machine, before = now - self.off_ms * MS, self._looked + self._before
            if time - now <= BELIEVED_MS * MS:
                return
            if self._is_slowed and abs(time - before) <= BELIEVED_MS * MS:
                self._is_slowed, self._kept = False, machine - before
                self._go_on(before, machine, is_straight=True)
                self._tell(ClockChange.KEPT, (machine - before) // MS)
            elif abs(time - machine) <= BELIEVED_MS * MS and self._agreed < self._stepped:
                self._go_on(self._follow(machine, now), machine, is_straight=True)

    def lead(self, at_ms: int) -> None:
        """Another process' clock says this, time and again, and that one counts."""
        said, heard = at_ms * MS, self._monotonic()
        before, self._led = self._led, (said, heard)
        if before is None:
            return
        went_on, passed = said - before[0], heard - before[1]
        # What waited to be read comes faster or later than it was said, and says nothing of now.
        if went_on // 2 <= passed <= 2 * went_on + 2 * S:
            apart = said - self._machine()
            self._apart = apart if abs(apart) > STEP else 0

    def go_on_from(self, known_ms: int) -> None:
        """Prices are known up to then: a process before this one was ahead of the machine's clock."""
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
        # Nobody is told an earlier time than before.
        least = went_on if self._is_straight else self._now + passed // 2
        self._since = None
        if machine >= least or not self._is_slowed:
            self._meet()
        return self._go_on(max(least, machine), machine, is_straight=machine >= least)

    def _read(self) -> tuple[int, int]:
        """Both clocks at one moment, as far as nobody came in between."""
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
            self._tell(ClockChange.KEPT, off // MS)
        elif off > 0:
            return self._follow(went_on + off, went_on)
        else:
            self._slow(looked, went_on, off)
        return went_on

    def _is_awaited(self, held: int) -> bool:
        """A source that agreed until the step has said nothing since."""
        return self._stepped - HEARD < self._agreed < self._stepped and held < AWAITED

    def _follow(self, machine: int, now: int) -> int:
        self.steps += 1
        self._since = self._kept = None
        self._tell(ClockChange.FOLLOWED, (machine - now) // MS)
        return machine

    def _slow(self, looked: int, now: int, off: int) -> None:
        self.steps += 1
        self._since = self._kept = None
        self._is_slowed, self._before = True, now - looked
        self._tell(ClockChange.SLOWED, off // MS)

    def _meet(self) -> None:
        if self._is_slowed or self._kept is not None:
            self._is_slowed, self._kept = False, None
            self._tell(ClockChange.MET, 0)
