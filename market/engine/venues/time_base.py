"""The time base of one connection: how far our clock is ahead of the venue's, the venue's latest time, and
the time of a message that has none."""

from collections import deque

from market.prices.candles import interval_start
from market.prices.order_flow import WINDOW_MS

# An event further ahead than this is not believed until it is confirmed.
BELIEVED_MS = 5_000
AGREEING = 3

# As a rule, a trade is sent at most this long after it was made.
TOLD_AFTER_MS = 20

# After a pause as long as this, what comes may have been under way for all of it.
PAUSE_MS = 2_000

# A venue that says no time for so long is taken to have ours.
UNTIMED_MS = 10_000

# The least of the lags of so long, and of as long before, is the difference of the clocks.
LEAST_OF_MS = 60_000

# As a rule, an answer is made and the next event sent at most this long after the request.
ANSWERED_MS = 2_000
NEVER_MS = 1 << 52


class TimeBase:
    """A lag, from an event to our receipt of it, is the difference of the clocks and the time under way. Only
    the latter varies, and never below zero. A line that is always slow looks like a clock that is off, with
    one exception: an event that is sent after an answer was made after our request."""

    def __init__(self) -> None:
        self.is_known = False
        self.source_ms = 0
        """The latest event; everything that the venue sent before it has come."""
        self._lag_ms = 0
        """Of the last event."""
        self._dated_ms = 0
        self._received_ms: int | None = None
        self._began_ms = 0
        self._doubted_until_ms = 0
        self._lags: deque[int] = deque(maxlen=AGREEING)
        self._least_ms = self._least_before_ms = 0
        self._turned_ms = 0
        self._asked: deque[int] = deque()
        """When, for what is not answered yet."""
        self._answered_ms: int | None = None
        """The time of the request whose answer is the last message, if no event has come since."""
        self._most_ms = NEVER_MS

    @property
    def is_doubted(self) -> bool:
        """An event carries another time than ours, and nothing confirms it yet."""
        return bool(self._lags) and not self.is_known

    @property
    def ahead_ms(self) -> int:
        """How far our clock is ahead of the venue's."""
        return min(self._least_ms, self._least_before_ms, self._most_ms)

    def receive(self, received_ms: int) -> None:
        """Any message came."""
        if self._received_ms is None:
            self._began_ms = received_ms
        elif not (self.is_known or self._lags) and received_ms - self._began_ms > UNTIMED_MS:
            self.is_known = True
        elif received_ms - self._received_ms > PAUSE_MS:
            self._doubted_until_ms = received_ms + PAUSE_MS
        self._received_ms = received_ms

    def ask(self, asked_ms: int) -> None:
        """The venue was asked for a sign of life."""
        self._asked.append(asked_ms)

    def answer(self) -> None:
        """It gave one; each is answered in its turn."""
        if self._asked:
            self._answered_ms = self._asked.popleft()

    def date_answer(self, asked_ms: int, made_ms: int) -> None:
        """To what was asked then: the venue says when it was made, or a little before."""
        self._most_ms = asked_ms - made_ms + ANSWERED_MS

    def hear(self, event_ms: int, received_ms: int) -> None:
        """It says from when it is."""
        lag_ms = received_ms - event_ms
        self._lags.append(lag_ms)
        is_near = abs(lag_ms) <= BELIEVED_MS if not self.is_known else lag_ms >= self.ahead_ms - BELIEVED_MS
        if not (is_near or self._agree()):
            return
        if not (is_near and self.is_known):
            self._least_ms = self._least_before_ms = lag_ms
            self.is_known, self._turned_ms = True, received_ms
        elif not 0 <= received_ms - self._turned_ms < LEAST_OF_MS:
            self._least_before_ms, self._least_ms, self._turned_ms = self._least_ms, lag_ms, received_ms
        self._least_ms = min(self._least_ms, lag_ms)
        if self._answered_ms is not None:
            self.date_answer(self._answered_ms, event_ms)
            self._answered_ms = None
        self._lag_ms, self._doubted_until_ms = lag_ms, 0
        self.source_ms = max(self.source_ms, event_ms)

    def date(self, received_ms: int) -> int:
        """From when a message is that does not say so: never from a window that has not begun for certain, or
        it would end the one that trades still come of."""
        dated_ms = certain_ms = self.source_ms - TOLD_AFTER_MS
        if received_ms >= self._doubted_until_ms or not self.source_ms:
            dated_ms = max(dated_ms, received_ms - self._lag_ms)
            ends_ms = interval_start(certain_ms, WINDOW_MS) + WINDOW_MS
            if ends_ms <= dated_ms < ends_ms + BELIEVED_MS:
                dated_ms = ends_ms - 1
        self._dated_ms = max(self._dated_ms, dated_ms)
        return self._dated_ms

    def _agree(self) -> bool:
        lags = self._lags
        return len(lags) == AGREEING and max(lags) - min(lags) <= BELIEVED_MS
