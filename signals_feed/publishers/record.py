"""A publisher's record, event by event. Closed signals never change, so yesterday's record needs only what
was filled and closed since. Open ones count at each reading, at their present exit price.

It counts episodes: signals of one instrument and direction that begin while the first of them is open are one
decision, however many they are. An episode's result is the lower of its first signal's and the mean of all,
so that neither copies nor companions improve it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from signals_feed.publishers.purses import Rank, Standing, rank_r

# A publisher's results summed up, episode by episode, in as many points as a picture needs.
# A picture is a few hundred pixels wide.
MOST_POINTS = 400


class EquityPoint(NamedTuple):
    """Equity after this many signals; low and high cover what came since the point before."""

    signals: int
    at: datetime
    equity_r: Decimal
    low_r: Decimal
    high_r: Decimal

    def joined(self, later: EquityPoint) -> EquityPoint:
        return later._replace(low_r=min(self.low_r, later.low_r), high_r=max(self.high_r, later.high_r))


@dataclass(slots=True)
class EquityCurve:
    """One point for each sum. Where there are too many, neighbours are joined, so that memory and answers
    stay small and no fall is smoothed away."""

    points: list[EquityPoint] = field(default_factory=list)
    sums: int = 0
    step: int = 1
    """Sums in a point; the last one may hold fewer."""

    def add(self, at: datetime, equity_r: Decimal, signals: int) -> None:
        new = EquityPoint(signals, at, equity_r, equity_r, equity_r)
        self.sums += 1
        if (self.sums - 1) % self.step:
            self.points[-1] = self.points[-1].joined(new)
            return
        self.points.append(new)
        if len(self.points) > MOST_POINTS:
            self.points, self.step = list(self._pairs()), 2 * self.step

    def _pairs(self) -> Iterator[EquityPoint]:
        for number in range(0, len(self.points), 2):
            first, *second = self.points[number : number + 2]
            yield first.joined(second[0]) if second else first


WIDTH, HEIGHT = 700, 220

# Half the width of the line, so that it stays inside the picture.
EDGE = 2
MOST_ROWS = 20


class EquityPicture(NamedTuple):
    """`line` and `band` are lists of points as SVG writes them; y grows downwards."""

    line: str
    band: str
    """The area between the lowest and the highest sums of the points."""
    zero_y: str
    top_r: Decimal
    bottom_r: Decimal


def draw(points: Sequence[EquityPoint]) -> EquityPicture:
    top = max(Decimal(0), *(point.high_r for point in points))
    bottom = min(Decimal(0), *(point.low_r for point in points))
    span = (top - bottom) or Decimal(1)
    last = points[-1].signals

    def x(signals: int) -> str:
        return f"{EDGE + (WIDTH - 2 * EDGE) * signals / last:.1f}"

    def y(equity_r: Decimal) -> str:
        return f"{EDGE + (HEIGHT - 2 * EDGE) * (top - equity_r) / span:.1f}"

    start = f"{x(0)},{y(Decimal(0))}"
    highs = [f"{x(point.signals)},{y(point.high_r)}" for point in points]
    lows = [f"{x(point.signals)},{y(point.low_r)}" for point in reversed(points)]
    return EquityPicture(
        line=" ".join([start, *(f"{x(point.signals)},{y(point.equity_r)}" for point in points)]),
        band=" ".join([start, *highs, *lows]),
        zero_y=y(Decimal(0)),
        top_r=top,
        bottom_r=bottom,
    )


def table_rows(points: Sequence[EquityPoint]) -> list[EquityPoint]:
    return thinned(points, MOST_ROWS)


def thinned(points: Sequence[EquityPoint], most: int) -> list[EquityPoint]:
    """A few evenly spaced points, the last among them."""
    step = -(-len(points) // most)
    return list(reversed(points[::-1][::step])) if points else []


ZERO = Decimal(0)
STEP = Decimal("0.0001")
# Below this, luck and skill look alike.
ENOUGH = 30

OpenR = Mapping[UUID, Decimal]
"""The present result of every open signal."""


@dataclass(slots=True)
class Episode:
    symbol: str
    first: UUID
    signals: int = 0
    open: set[UUID] = field(default_factory=set)
    first_r: Decimal | None = None
    """None while the first signal is open."""
    closed_r: Decimal = ZERO

    def fill(self, key: UUID) -> None:
        self.signals += 1
        self.open.add(key)

    def close(self, key: UUID, pnl_r: Decimal) -> None:
        self.open.remove(key)
        self.closed_r += pnl_r
        if key == self.first:
            self.first_r = pnl_r

    def result(self, open_r: OpenR) -> Decimal:
        first_r = open_r[self.first] if self.first_r is None else self.first_r
        total_r = self.closed_r + sum(open_r[key] for key in self.open)
        return min(first_r, (total_r / self.signals).quantize(STEP, ROUND_HALF_UP))


@dataclass(slots=True)
class TrackRecord:
    """Of all episodes, or of those of one symbol."""

    episodes: int = 0
    open: int = 0
    signals: int = 0
    """Those that have closed, also of episodes that have not ended."""
    wins: int = 0
    losses: int = 0
    total_r: Decimal = ZERO

    def add(self, result: Decimal, closed: int, *, is_open: bool) -> None:
        self.episodes += 1
        self.open += is_open
        self.signals += closed
        self.total_r += result
        # What is ahead has not won yet; what is behind would otherwise stay open to count as nothing.
        self.wins += result > 0 and not is_open
        self.losses += result < 0 or (result == 0 and not is_open)

    @property
    def win_rate(self) -> Decimal | None:
        return share(Decimal(self.wins), self.wins + self.losses)

    @property
    def win_percent(self) -> Decimal | None:
        return None if self.win_rate is None else 100 * self.win_rate

    @property
    def expectancy_r(self) -> Decimal | None:
        return share(self.total_r, self.episodes)

    @property
    def too_few(self) -> bool:
        return self.episodes - self.open < ENOUGH


@dataclass(slots=True)
class Drawdown:
    """How far equity fell below its highest point, and for how many signals it stayed below."""

    peak_r: Decimal = ZERO
    peak_signals: int = 0
    deepest_r: Decimal = ZERO
    longest: int = 0

    def add(self, equity_r: Decimal, signals: int) -> None:
        if equity_r >= self.peak_r:
            self.peak_r, self.peak_signals = equity_r, signals
        self.longest = max(self.longest, signals - self.peak_signals)
        self.deepest_r = max(self.deepest_r, self.peak_r - equity_r)


@dataclass(slots=True)
class Figures:
    all: TrackRecord = field(default_factory=TrackRecord)
    by_symbol: dict[str, TrackRecord] = field(default_factory=dict)
    drawdown: Drawdown = field(default_factory=Drawdown)
    equity: EquityCurve = field(default_factory=EquityCurve)

    def end(self, episode: Episode, at: datetime) -> None:
        """Call it in the order in which they end, on which drawdowns depend."""
        self._add(episode, {}, is_open=False)
        self._draw(at, self.all.signals)

    def with_open(self, episodes: Collection[Episode], open_r: OpenR, now: datetime) -> Figures:
        """A copy with its symbols in their order; all that is open makes one step of the curve."""
        copied = replace(
            self,
            all=replace(self.all),
            by_symbol={symbol: replace(record) for symbol, record in self.by_symbol.items()},
            drawdown=replace(self.drawdown),
            equity=replace(self.equity, points=self.equity.points.copy()),
        )
        for episode in episodes:
            copied._add(episode, open_r, is_open=True)
        if episodes:
            copied._draw(now, copied.all.signals + sum(len(episode.open) for episode in episodes))
        copied.by_symbol = dict(sorted(copied.by_symbol.items()))
        return copied

    def _add(self, episode: Episode, open_r: OpenR, *, is_open: bool) -> None:
        result = episode.result(open_r)
        for record in (self.all, self.by_symbol.setdefault(episode.symbol, TrackRecord())):
            record.add(result, episode.signals - len(episode.open), is_open=is_open)

    def _draw(self, at: datetime, signals: int) -> None:
        self.drawdown.add(self.all.total_r, signals)
        self.equity.add(at, self.all.total_r, signals)


def share(part: Decimal, count: int) -> Decimal | None:
    return (part / count).quantize(STEP, ROUND_HALF_UP) if count else None


class Episodes:
    """Signals are entered in the order of events. What has ended never changes."""

    def __init__(self) -> None:
        self._ended = Figures()
        self._of: dict[UUID, Episode] = {}
        """By open signal."""
        self._joined: dict[tuple[str, str], Episode] = {}
        """Those whose first signal is open, by symbol and direction."""

    def fill(self, key: UUID, symbol: str, direction: str) -> None:
        episode = self._joined.setdefault((symbol, direction), Episode(symbol, key))
        episode.fill(key)
        self._of[key] = episode

    def close(self, key: UUID, direction: str, pnl_r: Decimal, at: datetime) -> None:
        episode = self._of.pop(key)
        episode.close(key, pnl_r)
        if key == episode.first:
            del self._joined[episode.symbol, direction]
        if not episode.open:
            self._ended.end(episode, at)

    def read(self, open_r: OpenR, now: datetime) -> Figures:
        still_open = {id(episode): episode for episode in self._of.values()}
        return self._ended.with_open(still_open.values(), open_r, now)


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
