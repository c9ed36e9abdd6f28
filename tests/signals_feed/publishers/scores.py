"""The rank, and what would take luck for skill."""

from __future__ import annotations

from random import Random
from uuid import UUID

from signals_feed.publishers.purses import PROVEN, RESERVE_R, SHARES, Rank, rank_r

from .luck import Trade


class Ranked:
    def __init__(self) -> None:
        self.rank = Rank()

    def fill(self, trade: Trade) -> None:
        self.rank.fill(trade.key)

    def close(self, trade: Trade, gain: float) -> None:
        self.rank.close(trade.key, rank_r(gain, trade.distance, trade.unit))

    @property
    def convinced(self) -> bool:
        return self.rank.highest >= PROVEN


class CutLosses(Ranked):
    """No loss exceeds what is set aside for it."""

    def close(self, trade: Trade, gain: float) -> None:
        self.rank.close(trade.key, max(rank_r(gain, trade.distance, trade.unit), -RESERVE_R))


class StakedTwice:
    """A stake is a share of all that the purse holds, however much of that is staked already."""

    convinced = False

    def __init__(self) -> None:
        self._held = [1.0] * len(SHARES)
        self._stakes: dict[UUID, list[float]] = {}

    def fill(self, trade: Trade) -> None:
        self._stakes[trade.key] = [
            share * max(held, 0.0) for share, held in zip(SHARES, self._held, strict=True)
        ]

    def close(self, trade: Trade, gain: float) -> None:
        result = rank_r(gain, trade.distance, trade.unit)
        stakes = self._stakes.pop(trade.key)
        self._held = [held + stake * result for held, stake in zip(self._held, stakes, strict=True)]
        self.convinced |= sum(max(held, 0.0) for held in self._held) >= PROVEN * len(SHARES)


class Leaderboard:
    """A win rate of 70 % or an average of 0.2 R over at least thirty closed signals."""

    convinced = False

    def __init__(self) -> None:
        self._closed = self._wins = 0
        self._total_r = 0.0

    def fill(self, trade: Trade) -> None: ...

    def close(self, trade: Trade, gain: float) -> None:
        self._closed += 1
        self._wins += gain > 0
        self._total_r += gain / trade.distance
        best = max(self._wins / self._closed / 0.7, self._total_r / self._closed / 0.2)
        self.convinced |= self._closed >= 30 and best >= 1


def is_proven_in_time(rng: Random) -> bool:
    """Whether an honest publisher is, with 0.3 R a day on average, a deviation of 1 R and 300 days."""
    rank = Rank()
    for day in range(300):
        rank.fill(UUID(int=day))
        rank.close(UUID(int=day), rng.gauss(0.3, 1))
    return rank.highest >= PROVEN
