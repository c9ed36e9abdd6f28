"""Markets that nobody can foresee, and the desk at which a publisher trades on them. There is no spread: what
it costs would only help the rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from signals_feed.publishers.purses import JUMP_IN_UNITS, JUMPS_OF_DAYS

TICKS_A_DAY = 6
LIFETIME = 7 * TICKS_A_DAY
BEGINS = JUMPS_OF_DAYS * TICKS_A_DAY
QUARTER = 91
SIX_WEEKS = 42

CURRENCIES = range(4)
"""Closed on weekends."""
TWINS = range(4, 8)
"""Hardly differ from the currency with the number below by four, and are never closed."""
STOCKS = range(8, 208)
"""Open for a third of each weekday. Once a quarter, on a known date, a night moves them four times as far as
others."""
COUNT = 208


class Market:
    """Every six weeks, on a known date, a decision moves all together, four times as far as nights."""

    def __init__(
        self,
        seed: int,
        days: int,
        jumps_of_days: int = JUMPS_OF_DAYS,
        jump_in_units: int = JUMP_IN_UNITS,
    ) -> None:
        # Unlike that of the newer generators, its sequence is the same in every version.
        rng = np.random.RandomState(seed)
        ticks = BEGINS + days * TICKS_A_DAY
        day, hour = np.divmod(np.arange(ticks), TICKS_A_DAY)
        is_weekday = day % 7 < 5
        self.is_open = np.ones((ticks, COUNT), dtype=np.bool_)
        self.is_open[:, CURRENCIES] = is_weekday[:, None]
        self.is_open[:, STOCKS] = (is_weekday & (hour < 2))[:, None]
        self.is_decided = (hour == 1) & (day % SIX_WEEKS == 2)
        """Whether it is the last tick before a decision."""
        self.is_announced = np.zeros((ticks, COUNT), dtype=np.bool_)
        for stock in STOCKS:
            self.is_announced[:, stock] = (hour == 1) & is_weekday & (day % QUARTER == stock % QUARTER)
        self.price = self._prices(rng, ticks)
        self.unit = self._largest_jumps(jumps_of_days * TICKS_A_DAY) / jump_in_units
        self.reopens = self._reopens()

    def _prices(self, rng: np.random.RandomState, ticks: int) -> NDArray[np.float64]:
        alone = rng.standard_t(4, (ticks, COUNT))
        jumps = np.where(rng.random_sample((ticks, COUNT)) < 0.0005, 8, 1)
        known = np.where(np.roll(self.is_announced, 1, axis=0), 8 * rng.standard_t(4, (ticks, COUNT)), 0)
        decided = np.where(np.roll(self.is_decided, 1), 8 * rng.standard_t(4, ticks), 0)
        moves = 0.5 * rng.standard_t(4, (ticks, 1)) + 0.85 * alone * jumps + known + decided[:, None]
        moves[:, TWINS] = moves[:, CURRENCIES] + 0.1 * alone[:, TWINS]
        true = 100 * np.cumprod(1 + np.clip(0.003 * moves, -0.5, 0.5), axis=0).astype(np.float64)
        last_open = np.maximum.accumulate(np.where(self.is_open, np.arange(ticks)[:, None], 0), axis=0)
        prices: NDArray[np.float64] = np.take_along_axis(true, last_open, axis=0)
        return prices

    def _largest_jumps(self, ticks: int) -> NDArray[np.float64]:
        """Of the time before each tick."""
        moves = np.abs(np.diff(self.price, axis=0, prepend=self.price[:1]))
        largest = sliding_window_view(moves, ticks, axis=0).max(axis=-1)
        return np.concatenate([np.full((ticks - 1, COUNT), np.nan), largest])

    def _reopens(self) -> NDArray[np.int64]:
        """For each tick the first one at which the market is open."""
        ticks = len(self.price)
        numbers = np.where(self.is_open, np.arange(ticks)[:, None], ticks - 1)
        return np.minimum.accumulate(numbers[::-1], axis=0)[::-1]

    def closing(self, tick: int) -> list[int]:
        """What has its last tick before a closure."""
        return np.flatnonzero(self.is_open[tick] & ~self.is_open[tick + 1]).tolist()

    def announced(self, tick: int) -> list[int]:
        return np.flatnonzero(self.is_announced[tick]).tolist()


class Trade(NamedTuple):
    key: UUID
    what: int
    side: int
    """1 for a buy, -1 for a sell."""
    paid: float
    distance: float
    unit: float
    ends: int
    """When the stop, the target or the end of its life closes it, and what it then gains."""
    gain: float


class Score(Protocol):
    """Who keeps count: the rank, or what it is compared with."""

    def fill(self, trade: Trade) -> None: ...

    def close(self, trade: Trade, gain: float) -> None: ...

    @property
    def convinced(self) -> bool:
        """Whether it ever took luck for skill."""
        ...


@dataclass
class Desk:
    market: Market
    scores: Sequence[Score]
    now: int = BEGINS
    open: dict[UUID, Trade] = field(default_factory=dict)
    total_r: float = 0.0
    """Of all that has closed."""
    _count: int = 0
    _due: list[tuple[UUID, float]] = field(default_factory=list)

    def fill(self, what: int, side: int, stop: float, target: float = 10.0) -> Trade | None:
        """Stop and target in units of the rank; None while the market is closed."""
        market, now = self.market, self.now
        if not market.is_open[now, what]:
            return None
        unit, paid = float(market.unit[now, what]), float(market.price[now, what])
        last = min(now + LIFETIME, len(market.price) - 1)
        end = max(last, int(market.reopens[last, what]))
        gains = side * (market.price[now + 1 : end + 1, what] - paid)
        hits = np.flatnonzero((gains <= -stop * unit) | (gains >= target * unit))
        first = int(hits[0]) if len(hits) else len(gains) - 1
        self._count += 1
        gain = min(float(gains[first]), target * unit)
        trade = Trade(UUID(int=self._count), what, side, paid, stop * unit, unit, now + 1 + first, gain)
        self.open[trade.key] = trade
        for score in self.scores:
            score.fill(trade)
        return trade

    def both(self, what: int, stop: float, target: float = 10.0) -> None:
        self.fill(what, 1, stop, target)
        self.fill(what, -1, stop, target)

    def gain_of(self, trade: Trade) -> float:
        return trade.side * (float(self.market.price[self.now, trade.what]) - trade.paid)

    def in_r(self, trade: Trade) -> float:
        return self.gain_of(trade) / trade.distance

    def close(self, trade: Trade) -> None:
        """By hand. What is filled at the same time comes first."""
        if self.market.is_open[self.now, trade.what]:
            self._due.append((trade.key, self.gain_of(trade)))

    def settle(self) -> None:
        due = dict(self._due)
        due |= {trade.key: trade.gain for trade in self.open.values() if trade.ends <= self.now}
        for key, gain in due.items():
            trade = self.open.pop(key)
            self.total_r += gain / trade.distance
            for score in self.scores:
                score.close(trade, gain)
        self._due.clear()
        self.now += 1


class Publisher(Protocol):
    def act(self, desk: Desk) -> None: ...


def play(publisher: Publisher, desk: Desk) -> None:
    while desk.now < len(desk.market.price) - 1:
        publisher.act(desk)
        desk.settle()
