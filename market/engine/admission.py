"""Which ticks are let in, by their feed, values, times and distance from the last price."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from math import isfinite
from statistics import fmean, median

from core.times import MINUTE_MS
from instruments.facts import InstrumentFacts
from market.prices.candles import PriceBar, interval_start
from market.prices.records import Tick

from .venues.time_base import ANSWERED_MS

# A source whose clock runs ahead by more than this is not believed.
FUTURE_MS = 5_000

# What the database has room for: ten digits before the point.
TOO_HIGH = 1e10

# Such ticks do not say where the price is, only that it has changed.
UNBELIEVED = frozenset({"not_finite", "not_positive", "crossed", "too_high", "future", "outlier"})

# A source that sends only what is older than this has a clock that is behind.
STRAGGLES_MS = 60_000


def reason_to_refuse(
    tick: Tick, last: Tick | None, closed_until_ms: int | None, facts: InstrumentFacts, now_ms: int
) -> str | None:
    """None for a good tick. Minutes that began before `closed_until_ms` are closed; it is None while a file
    is read."""
    if not (isfinite(tick.bid) and isfinite(tick.ask) and isfinite(tick.volume)):
        return "not_finite"
    if tick.volume < 0 or round(tick.bid, facts.digits) <= 0:
        return "not_positive"
    if tick.ask < tick.bid:
        return "crossed"
    if tick.ask >= TOO_HIGH or tick.volume >= TOO_HIGH:
        return "too_high"
    if tick.price is not None and (reason := _reason_of_price(tick.price, facts)):
        return reason
    if tick.time_ms > now_ms + FUTURE_MS:
        return "future"
    return _reason_of_time(tick, last, closed_until_ms, facts)


def shows_another_price(reason: str, tick: Tick, last: Tick | None, now_ms: int) -> bool:
    """Whether a source that sent what was refused so has another price than the last good one. One that sends
    a tick again, or a straggler, or after the close, has not."""
    if reason == "too_late":
        is_older = last is not None and tick.time_ms <= last.time_ms
        return not is_older or now_ms - tick.time_ms > STRAGGLES_MS
    return reason in UNBELIEVED


def _reason_of_price(price: float, facts: InstrumentFacts) -> str | None:
    """The price of a trade, which need not be between bid and ask."""
    if not isfinite(price):
        return "not_finite"
    if round(price, facts.digits) <= 0:
        return "not_positive"
    return "too_high" if price >= TOO_HIGH else None


def _reason_of_time(
    tick: Tick, last: Tick | None, closed_until_ms: int | None, facts: InstrumentFacts
) -> str | None:
    if last is not None and tick.time_ms <= last.time_ms:
        if tick == last:
            return "duplicate"
        if closed_until_ms is not None and tick.time_ms < interval_start(last.time_ms, MINUTE_MS):
            return "too_late"
    if closed_until_ms is not None and tick.time_ms < closed_until_ms:
        return "too_late"
    if last is not None and tick.time_ms < last.time_ms:
        return "older_than_last"
    if not facts.hours.is_open(tick.time_ms):
        return "market_closed"
    return None


def is_sent_again(tick: Tick, known: int | None, last: Tick | None) -> bool:
    """Whether its source sent it before; `known` is the last number of that source. Lower numbers with later
    times mean that the source restarted its numbering."""
    if tick.source_seq is None or known is None or tick.source_seq > known:
        return False
    return tick.source_seq == known or last is None or tick.time_ms <= last.time_ms


SPREADS = 50
RANGES = 15

# This many ticks that agree with each other are a new level; the last of them is taken.
AGREEING = 3
KEPT_SPREADS = 100

# If no other outlier comes for this long, the first ones were no new level.
SETTLED_AFTER_MS = 10_000


class Settling:
    """Whether the prices of an instrument are settled. From a refused outlier on they are not, until a level
    is confirmed, three ticks at the old one are accepted, or no other outlier comes for a while. Times are
    those of the engine's clock."""

    __slots__ = ("_accepted", "_counted_ms", "_outlier_ms", "is_settled", "unsettled_ms")

    def __init__(self) -> None:
        self.is_settled = True
        self.unsettled_ms = 0
        """For how long they were not, in all, as far as that was counted."""
        self._accepted = self._counted_ms = self._outlier_ms = 0

    def unsettle(self, at_ms: int) -> None:
        self.count(at_ms)
        if self.is_settled:
            self.is_settled, self._counted_ms = False, at_ms
        self._accepted, self._outlier_ms = 0, at_ms

    def go_on(self, unsettled_ms: int, at_ms: int) -> None:
        """From what another engine counted. What that engine had just refused is unknown."""
        self.unsettled_ms = max(self.unsettled_ms, unsettled_ms)
        self.unsettle(at_ms)

    def accept(self, at_ms: int, *, confirms: bool) -> None:
        self.pass_time(at_ms)
        self._accepted += 1
        if not self.is_settled and (confirms or self._accepted == AGREEING):
            self._settle(at_ms)

    def pass_time(self, at_ms: int) -> None:
        settles_ms = self._outlier_ms + SETTLED_AFTER_MS
        if not self.is_settled and at_ms >= settles_ms:
            self._settle(settles_ms)

    def count(self, at_ms: int) -> int:
        """For how long they were not settled until now."""
        self.pass_time(at_ms)
        if not self.is_settled and at_ms > self._counted_ms:
            self.unsettled_ms += at_ms - self._counted_ms
            self._counted_ms = at_ms
        return self.unsettled_ms

    def _settle(self, at_ms: int) -> None:
        self.unsettled_ms += max(0, at_ms - self._counted_ms)
        self.is_settled = True


class Outliers:
    """Of one instrument. A tick is refused if its mid is further from the last one than 50 median spreads,
    15 mean ranges of a minute and the instrument's share of the price, or if its trade is as far from its own
    mid."""

    __slots__ = ("_agreeing", "_level", "_spreads", "last_price", "refused", "refused_ms", "settling")

    def __init__(self) -> None:
        self._spreads: deque[float] = deque(maxlen=KEPT_SPREADS)
        self._level = 0.0
        self._agreeing = 0
        self.settling = Settling()
        self.refused = 0
        self.refused_ms = 0
        self.last_price = 0.0
        """The mid of the last one that was refused, or the price of its trade."""

    def admit(
        self,
        tick: Tick,
        last: Tick | None,
        minutes: Iterable[PriceBar],
        facts: InstrumentFacts,
        at_ms: int,
        ahead_ms: int = 0,
    ) -> bool:
        """`minutes` are the last that were closed."""
        if self._is_far(tick, last, minutes, facts, at_ms - ahead_ms):
            self.settling.unsettle(at_ms)
            return False
        self._spreads.append(tick.ask - tick.bid)
        if not self.settling.is_settled:
            self.settling.accept(at_ms, confirms=self._agreeing == AGREEING)
        # Whatever was refused before this one is no new level.
        self._agreeing = 0
        return True

    def _is_far(
        self, tick: Tick, last: Tick | None, minutes: Iterable[PriceBar], facts: InstrumentFacts, at_ms: int
    ) -> bool:
        share = facts.outlier_percent
        if last is None or not share:
            return False
        mid, last_mid = (tick.bid + tick.ask) / 2, (last.bid + last.ask) / 2
        far, near = abs(mid - last_mid), last_mid * share / 100
        off = 0.0 if tick.price is None else abs(tick.price - mid)
        # Nearly always: what follows is for the others.
        if (far <= near and off <= near) or _is_first(last, facts, tick.time_ms, at_ms):
            return False
        limit = max(near, self._usual(last, minutes))
        if tick.price is not None and off > limit:
            # Nothing confirms it: where it belongs, the quote that it came with says.
            self._note_refused(tick.price, tick.time_ms)
            return True
        return far > limit and not self._confirms(mid, limit, tick.time_ms)

    def _usual(self, last: Tick, minutes: Iterable[PriceBar]) -> float:
        spread = median(self._spreads or [last.ask - last.bid])
        ranges = [minute.high - minute.low for minute in minutes]
        return max(SPREADS * spread, RANGES * fmean(ranges) if ranges else 0.0)

    def _confirms(self, mid: float, limit: float, time_ms: int) -> bool:
        agrees = self._agreeing > 0 and abs(mid - self._level) <= limit
        self._agreeing = self._agreeing + 1 if agrees else 1
        self._level = mid
        if self._agreeing == AGREEING:
            return True
        self._note_refused(mid, time_ms)
        return False

    def _note_refused(self, price: float, time_ms: int) -> None:
        self.refused, self.refused_ms, self.last_price = self.refused + 1, time_ms, price


def _is_first(last: Tick, facts: InstrumentFacts, time_ms: int, at_ms: int) -> bool:
    """After the opening, or after a time in which the quote was stale."""
    if at_ms - last.time_ms > facts.stale_after_s * 1000:
        return True
    session = facts.hours.session_at(time_ms)
    return session is None or last.time_ms < session[0]


# Silence for longer than this is no quiet market but a lost source.
SILENT_MS = 60_000

# A minute waits this long after its end for late messages of its venue.
AWAITED_MS = 60_000

# A connection that comes back within this long was only renewed.
GONE_MS = 5_000

# A longer list is of no use to a reader.
MOST_COMPLAINTS = 20

# A source that comes back must hold for this long before the instrument returns to it.
STEADY_MS = 10_000


# How late ticks came is kept for an hour, in steps; all delays beyond the greatest count as one.
LAG_MINUTES, LAG_STEP_MS, MOST_LAG_MS = 60, 50, 10_000


class RecentLags:
    """How late the ticks of a feed came within the last hour. Those are noted that came later than a fill
    waits anyway; the others are only counted."""

    __slots__ = ("_late", "_minutes")

    def __init__(self) -> None:
        self._late = Counter[int]()
        self._minutes: deque[tuple[int, Counter[int]]] = deque([(0, self._late)], maxlen=LAG_MINUTES)
        """For each minute, how many ticks came before it, and its ticks by their delay in steps."""

    def note(self, lag_ms: int) -> None:
        self._late[min(lag_ms, MOST_LAG_MS) // LAG_STEP_MS] += 1

    def turn(self, minutes: int, ticks: int) -> None:
        """Add this many minutes; `ticks` had come until now."""
        for _ in range(min(minutes, LAG_MINUTES)):
            self._late = Counter[int]()
            self._minutes.append((ticks, self._late))

    def p99_ms(self, ticks: int) -> int:
        """At most one tick in a hundred came later than this; 0 if fewer ticks were recorded."""
        may_be_later = (ticks - self._minutes[0][0]) // 100
        late = Counter[int]()
        for _, each in self._minutes:
            late.update(each)
        for step in sorted(late, reverse=True):
            may_be_later -= late[step]
            if may_be_later < 0:
                return (step + 1) * LAG_STEP_MS
        return 0


class FeedState:
    """The state of one feed in the engine."""

    def __init__(self) -> None:
        self.since_ms: int | None = None
        """The beginning of its present unbroken stretch."""
        self.heard_ms = 0
        self.lost_ms: int | None = None
        self.why = ""
        self.ticks = 0
        self.refused: Counter[str] = Counter()
        self.complaints: dict[str, None] = {}
        """What staff should do something about, of the connection that stands."""
        self.lag_ms = 0
        """How old the last tick was when it came."""
        self.lags = RecentLags()
        self.key = ""
        """The public ID of the key that its ticks come with."""
        self.is_moved = False
        """The venue is reached at an address that is not its own."""
        self.source_ms: int | None = None
        """Up to when everything that it sent has arrived, by its own clock; None if it has none."""
        self._awaited_since_ms: int | None = None
        self.ahead_ms = 0
        """How far the engine's clock is ahead of its own."""

    def note_time(self, source_ms: int, ahead_ms: int) -> None:
        self.source_ms, self.ahead_ms = max(self.source_ms or 0, source_ms), ahead_ms

    @property
    def known_ahead_ms(self) -> int | None:
        """None until a venue has sent its time. A small offset counts as none: a slow line looks the same,
        and a client with a quicker one must not be filled at a price from before the request."""
        if self.source_ms == 0 and not self.ahead_ms:
            return None
        return 0 if 0 < self.ahead_ms <= ANSWERED_MS else self.ahead_ms

    def ended_ms(self, at_ms: int, grace_ms: int) -> int:
        """What ended by then, in the venue's time, is complete: a fixed time afterwards, once the venue has
        sent something later; otherwise after a grace period."""
        until_ms = at_ms - self.ahead_ms - grace_ms
        if self.source_ms is None:
            return until_ms
        if not self.source_ms:
            # The venue's time is still unknown.
            self._awaited_since_ms = at_ms if self._awaited_since_ms is None else self._awaited_since_ms
            if at_ms - self._awaited_since_ms < AWAITED_MS:
                return 0
        return max(min(until_ms, self.source_ms), at_ms - self.ahead_ms - AWAITED_MS)

    def heard(self, at_ms: int) -> None:
        """A batch came; an empty one is a sign of life too."""
        if self.since_ms is None or at_ms - self.heard_ms > SILENT_MS:
            self.since_ms = at_ms
        self.heard_ms = at_ms
        self.lost_ms = None

    def refuse(self, reason: str, what: str) -> None:
        self.refused[reason] += 1
        if what and len(self.complaints) < MOST_COMPLAINTS:
            self.complaints[what] = None

    def lost(self, at_ms: int = 0, why: str = "") -> None:
        self.since_ms = None
        # The next connection says what it still finds.
        self.complaints.clear()
        self.why = why
        if self.lost_ms is None:
            self.lost_ms = at_ms

    def was_alive(self, start_ms: int, end_ms: int) -> bool:
        """From start to end without a break, in its own time."""
        if self.since_ms is None:
            return False
        since_ms, heard_ms = self.since_ms - self.ahead_ms, self.heard_ms - self.ahead_ms
        return since_ms <= start_ms and end_ms - heard_ms <= SILENT_MS

    def is_gone(self, at_ms: int) -> bool:
        return self.lost_ms is not None and at_ms - self.lost_ms > GONE_MS


class FeedChoice:
    """The feeds of one instrument in the order of preference; one of them at a time is let in."""

    def __init__(self, feeds: tuple[str, ...], at_ms: int) -> None:
        self.feeds = feeds
        self.active = 0
        self.switched_ms: int | None = None
        self.switches = 0
        self.admits_none = False
        """Nothing is admitted: the series ends, and another begins with a choice of its own."""
        self._heard_ms = [at_ms] * len(feeds)
        self._steady_ms: int | None = None
        """Since when the preferred feed, which was stalled, has been sending again."""

    @property
    def feed(self) -> str:
        return self.feeds[self.active]

    def admit(
        self, origin: str, at_ms: int, facts: InstrumentFacts, feed_states: Mapping[str, FeedState]
    ) -> str | None:
        """None if the feed is let in, else why not."""
        rank = self._rank(origin)
        if rank is None or self.admits_none:
            return "not_its_source"
        before_ms, self._heard_ms[rank] = self._heard_ms[rank], at_ms
        if rank == self.active:
            return None
        if rank < self.active:
            if self._steady_ms is None or at_ms - before_ms > STEADY_MS:
                self._steady_ms = at_ms
            may_switch = at_ms - self._steady_ms >= STEADY_MS
        else:
            # No tick is expected before the market opens.
            session = facts.hours.session_at(at_ms)
            silent_ms = at_ms - max(self._heard_ms[self.active], session[0] if session else at_ms)
            may_switch = silent_ms > facts.stale_after_s * 1000 or self._is_gone(feed_states, at_ms)
        if not may_switch:
            return "standby"
        self.active, self.switched_ms, self._steady_ms = rank, at_ms, None
        self.switches += 1
        return None

    def serves(self, origin: str) -> bool:
        """Whether it is (one of) the source that is let in now."""
        return is_of(origin, self.feed)

    def _rank(self, origin: str) -> int | None:
        for rank, feed in enumerate(self.feeds):
            if is_of(origin, feed):
                return rank
        return None

    def _is_gone(self, feed_states: Mapping[str, FeedState], at_ms: int) -> bool:
        feed_state = feed_states.get(self.feed)
        return feed_state is not None and feed_state.is_gone(at_ms)


def is_of(origin: str, feed: str) -> bool:
    """`push:desk` may send where the source is `push`, or itself."""
    return origin == feed or (origin.startswith(feed) and origin[len(feed)] == ":")
