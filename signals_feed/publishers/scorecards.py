"""How well a publisher does, over every closed signal. Signals are added one by one: closed ones never
change, so yesterday's scorecard needs only those that closed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from .equity import EquityCurve

ZERO = Decimal(0)
STEP = Decimal("0.0001")

# Below this, luck and skill look alike.
ENOUGH = 30


class ScoredSignal(NamedTuple):
    """What a scorecard reads of a closed signal."""

    symbol: str
    reason: str
    closed_at: datetime
    pnl_r: Decimal
    best_r: Decimal | None
    """How far the price went for the publisher while the signal was open."""
    worst_r: Decimal | None


@dataclass(slots=True)
class TrackRecord:
    """The record of all signals, or of those of one symbol."""

    signals: int = 0
    wins: int = 0
    total_r: Decimal = ZERO

    def add(self, pnl_r: Decimal) -> None:
        self.signals += 1
        self.wins += pnl_r > 0
        self.total_r += pnl_r

    @property
    def win_rate(self) -> Decimal | None:
        return share(Decimal(self.wins), self.signals)

    @property
    def win_percent(self) -> Decimal | None:
        return None if self.win_rate is None else 100 * self.win_rate

    @property
    def expectancy_r(self) -> Decimal | None:
        return share(self.total_r, self.signals)


@dataclass(slots=True)
class Drawdown:
    """How far equity fell below its highest point, and for how many signals it stayed below."""

    peak_r: Decimal = ZERO
    deepest_r: Decimal = ZERO
    longest: int = 0
    lasting: int = 0

    def add(self, equity_r: Decimal) -> None:
        if equity_r >= self.peak_r:
            self.peak_r, self.lasting = equity_r, 0
            return
        self.lasting += 1
        self.longest = max(self.longest, self.lasting)
        self.deepest_r = max(self.deepest_r, self.peak_r - equity_r)


@dataclass(slots=True)
class Scorecard:
    all: TrackRecord = field(default_factory=TrackRecord)
    by_symbol: dict[str, TrackRecord] = field(default_factory=dict)
    by_reason: Counter[str] = field(default_factory=Counter)
    drawdown: Drawdown = field(default_factory=Drawdown)
    equity: EquityCurve = field(default_factory=EquityCurve)
    best_r: Decimal | None = None
    worst_r: Decimal | None = None

    def add(self, outcome: ScoredSignal) -> None:
        """Call it in the order of closing, on which drawdowns depend."""
        self.all.add(outcome.pnl_r)
        self.by_symbol.setdefault(outcome.symbol, TrackRecord()).add(outcome.pnl_r)
        self.by_reason[outcome.reason] += 1
        self.drawdown.add(self.all.total_r)
        self.equity.add(outcome.closed_at, self.all.total_r)
        self.best_r = furthest(max, self.best_r, outcome.best_r)
        self.worst_r = furthest(min, self.worst_r, outcome.worst_r)

    def copy(self) -> Scorecard:
        """As it is now, with its symbols in their order."""
        return replace(
            self,
            all=replace(self.all),
            by_symbol={symbol: replace(record) for symbol, record in sorted(self.by_symbol.items())},
            by_reason=self.by_reason.copy(),
            drawdown=replace(self.drawdown),
            equity=replace(self.equity, points=self.equity.points.copy()),
        )

    @property
    def too_few(self) -> bool:
        return self.all.signals < ENOUGH


def furthest(choose: Callable[[list[Decimal]], Decimal], *excursions: Decimal | None) -> Decimal | None:
    known = [each for each in excursions if each is not None]
    return choose(known) if known else None


def share(part: Decimal, count: int) -> Decimal | None:
    return (part / count).quantize(STEP, ROUND_HALF_UP) if count else None
