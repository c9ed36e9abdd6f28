"""Whether a feed is alive, and which of an instrument's feeds is let in. Pure: times are passed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from instruments.kinds import is_simulated

if TYPE_CHECKING:
    from instruments.catalogue import InstrumentFacts

# Silence for longer than this is no quiet market but a lost source.
SILENT_MS = 60_000
# A connection that comes back within this long was only renewed.
GONE_MS = 5_000
# Of so many names nobody reads more.
MOST_COMPLAINTS = 20
# A source that comes back must hold for this long before the instrument returns to it.
STEADY_MS = 10_000


class FeedState:
    """One feed as the engine hears it."""

    def __init__(self) -> None:
        self._since_ms: int | None = None
        self.heard_ms = 0
        self.lost_ms: int | None = None
        self.why = ""
        self.ticks = 0
        self.refused: Counter[str] = Counter()
        self.complaints: dict[str, None] = {}
        """What staff should do something about, of the connection that stands."""
        self.lag_ms = 0
        """How old the last tick was when it came."""

    @property
    def since_ms(self) -> int | None:
        """Since when it has been heard without a break."""
        return self._since_ms

    def heard(self, at_ms: int) -> None:
        """A batch came; an empty one is a sign of life too."""
        if self._since_ms is None or at_ms - self.heard_ms > SILENT_MS:
            self._since_ms = at_ms
        self.heard_ms = at_ms
        self.lost_ms = None

    def refuse(self, reason: str, what: str) -> None:
        self.refused[reason] += 1
        if what and len(self.complaints) < MOST_COMPLAINTS:
            self.complaints[what] = None

    def lost(self, at_ms: int = 0, why: str = "") -> None:
        self._since_ms = None
        # The next connection says what it still finds.
        self.complaints.clear()
        self.why = why
        if self.lost_ms is None:
            self.lost_ms = at_ms

    def was_alive(self, start_ms: int, end_ms: int) -> bool:
        """From start to end without a break."""
        return (
            self._since_ms is not None and self._since_ms <= start_ms and end_ms - self.heard_ms <= SILENT_MS
        )

    def is_gone(self, at_ms: int) -> bool:
        return self.lost_ms is not None and at_ms - self.lost_ms > GONE_MS


class FeedChoice:
    """The feeds of one instrument in the order of preference; one of them at a time is let in."""

    def __init__(self, feeds: tuple[str, ...], at_ms: int) -> None:
        self.feeds = feeds
        self.active = 0
        self.switched_ms: int | None = None
        self.switches = 0
        self.admits_nobody = False
        """Nobody is let in: the series ends, and another begins with a choice of its own."""
        self._heard_ms = [at_ms] * len(feeds)
        self._steady_ms: int | None = None
        """Since when the preferred feed, which was stalled, has been sending again."""

    @property
    def feed(self) -> str:
        return self.feeds[self.active]

    def admit(
        self, origin: str, at_ms: int, facts: InstrumentFacts, sources: Mapping[str, FeedState]
    ) -> str | None:
        """None if the feed is let in, else why not."""
        rank = self._rank(origin)
        if rank is None or self.admits_nobody:
            return "not_its_source"
        before_ms, self._heard_ms[rank] = self._heard_ms[rank], at_ms
        if rank == self.active:
            return None
        if rank < self.active:
            if self._steady_ms is None or at_ms - before_ms > STEADY_MS:
                self._steady_ms = at_ms
            may_switch = at_ms - self._steady_ms >= STEADY_MS
        else:
            # Nobody is expected to send before the market opens.
            session = facts.hours.session_at(at_ms)
            silent_ms = at_ms - max(self._heard_ms[self.active], session[0] if session else at_ms)
            may_switch = silent_ms > facts.stale_after_s * 1000 or self._is_gone(sources, at_ms)
        if not may_switch:
            return "standby"
        self.active, self.switched_ms, self._steady_ms = rank, at_ms, None
        self.switches += 1
        return None

    def serves(self, origin: str) -> bool:
        """Whether it is (one of) the source that is let in now."""
        return _is_of(origin, self.feed)

    def _rank(self, origin: str) -> int | None:
        for rank, feed in enumerate(self.feeds):
            if _is_of(origin, feed):
                return rank
        return None

    def _is_gone(self, sources: Mapping[str, FeedState], at_ms: int) -> bool:
        source = sources.get(self.feed)
        return source is not None and source.is_gone(at_ms)


def _is_of(origin: str, feed: str) -> bool:
    """`push:desk` may send where the source is `push`, or itself."""
    return origin == feed or (origin.startswith(feed) and origin[len(feed)] == ":")


def feeds_of(source: str, fallback: str, default: str) -> tuple[str, ...]:
    """The feeds of an instrument by the names they send under: a venue's own symbol is no part of that. A
    fallback of the other kind is none: nobody is to take simulated prices for real ones."""
    first = source or default
    named = [first]
    if fallback and is_simulated(fallback) == is_simulated(first):
        named.append(fallback)
    kinds = [name if name.startswith("push") else name.partition(":")[0] for name in named]
    return tuple(dict.fromkeys(kinds))
