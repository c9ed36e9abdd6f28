"""A publisher's record, event by event. Closed signals never change, so yesterday's record needs only what
was filled and closed since. Open ones count at each reading, at their present exit price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from .episodes import STEP, Episodes, Figures
from .purses import Rank, Standing, rank_r

ListName = Literal["venue", "push", "demonstration"]
LISTS: tuple[ListName, ...] = get_args(ListName)
LAST = datetime.max.replace(tzinfo=UTC)


class Filled(NamedTuple):
    key: UUID
    at: datetime
    symbol: str
    direction: str
    paid: Decimal
    stop: Decimal
    rank_unit: Decimal
    ranked_in: ListName | None
    """The list of its feed; None for a signal that is never ranked."""
    listed_in: ListName = "push"
    """Where its publisher stands who is in no rank."""
    holds: bool = True
    """False if the judge contradicts it, or was not asked yet: then it gains nothing."""
    expires_at: datetime = LAST

    @property
    def distance(self) -> Decimal:
        return abs(self.paid - self.stop)

    def in_r(self, gain: Decimal) -> Decimal:
        return (gain / self.distance).quantize(STEP, ROUND_HALF_UP)

    def in_rank_r(self, gain: Decimal, *, keeps_mark: bool) -> float:
        return rank_r(float(gain), float(self.distance), float(self.rank_unit), keeps_mark=keeps_mark)


class Closed(NamedTuple):
    key: UUID
    at: datetime
    gain: Decimal
    """In price; negative for a loss."""
    reason: str
    best_r: Decimal | None
    """How far the price went for the publisher while the signal was open."""
    worst_r: Decimal | None
    keeps_mark: bool = True
    """False if it lost the mark of its fill other than by minutes of the venue."""


class Mark(NamedTuple):
    """What an open signal would gain if it closed now."""

    gain: Decimal
    keeps_mark: bool = True


Event = Filled | Closed


def place(event: Event) -> tuple[datetime, bool, UUID]:
    """By the time of the deciding tick. At the same time fills come first: a stake must not depend on a price
    that may be later than its own fill."""
    return event.at, isinstance(event, Closed), event.key


def furthest(choose: Callable[[list[Decimal]], Decimal], *excursions: Decimal | None) -> Decimal | None:
    known = [each for each in excursions if each is not None]
    return choose(known) if known else None


class Scorecard(NamedTuple):
    figures: Figures
    by_reason: Counter[str]
    unfilled: int
    late: int
    contradicted: int
    """Those among all of them that gain nothing because their records do not hold."""
    unjudged: int
    """Those that gain nothing as long as they are not judged. Until then there are no standings."""
    best_r: Decimal | None
    worst_r: Decimal | None
    standings: dict[ListName, Standing]
    """By list."""
    listed_in: ListName | None
    """That of the last fill."""

    @property
    def closed(self) -> int:
        return self.by_reason.total()


class Record:
    def __init__(self) -> None:
        self.open: dict[UUID, Filled] = {}
        self.unfilled = 0
        """Signals that ended without a fill, which are in no figure."""
        self.late = 0
        """Closed signals that count nowhere, because other rules had begun."""
        self.contradicted: set[UUID] = set()
        self.unjudged: set[int] = set()
        """Hashes of their rows."""
        self._listed_in: ListName | None = None
        self._episodes = Episodes()
        self._ranks: dict[ListName, Rank] = {}
        self._by_reason: Counter[str] = Counter()
        self._best_r: Decimal | None = None
        self._worst_r: Decimal | None = None

    @property
    def closed(self) -> int:
        return self._by_reason.total()

    def add(self, event: Event) -> None:
        """Call it in the order of their places."""
        if isinstance(event, Filled):
            self._fill(event)
        else:
            self._close(event)

    def _fill(self, filled: Filled) -> None:
        self.open[filled.key] = filled
        self._listed_in = filled.listed_in
        self._episodes.fill(filled.key, filled.symbol, filled.direction)
        if filled.ranked_in:
            self._ranks.setdefault(filled.ranked_in, Rank()).fill(filled.key)

    def _close(self, closed: Closed) -> None:
        filled = self.open.pop(closed.key)
        self._episodes.close(filled.key, filled.direction, filled.in_r(closed.gain), closed.at)
        if filled.ranked_in:
            result = filled.in_rank_r(closed.gain, keeps_mark=closed.keeps_mark)
            self._ranks[filled.ranked_in].close(filled.key, result)
        self._by_reason[closed.reason] += 1
        self._best_r = furthest(max, self._best_r, closed.best_r)
        self._worst_r = furthest(min, self._worst_r, closed.worst_r)

    def read(self, marks: Mapping[UUID, Mark], now: datetime) -> Scorecard:
        """`marks` has every open signal; nothing that is added later changes the answer."""
        open_r = {key: filled.in_r(marks[key].gain) for key, filled in self.open.items()}
        rank_marks = {
            key: filled.in_rank_r(marks[key].gain, keeps_mark=marks[key].keeps_mark)
            for key, filled in self.open.items()
        }
        ranks = {} if self.unjudged else self._ranks
        return Scorecard(
            self._episodes.read(open_r, now),
            self._by_reason.copy(),
            self.unfilled,
            self.late,
            len(self.contradicted),
            len(self.unjudged),
            self._best_r,
            self._worst_r,
            {name: ranks[name].read(rank_marks) for name in LISTS if name in ranks},
            self._listed_in,
        )
