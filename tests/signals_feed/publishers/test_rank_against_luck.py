from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from .cheats import CHEATS, Announced, Cheat, Copies
from .luck import Desk, Market, Score, play
from .scores import CutLosses, Leaderboard, Ranked, StakedTwice, is_proven_in_time

DAYS = 120


@pytest.fixture(scope="module")
def market() -> Market:
    return Market(37, DAYS)


@pytest.mark.parametrize("kind", CHEATS)
def test_no_trick_convinces_the_rank(market: Market, kind: type[Cheat]) -> None:
    score = Ranked()
    play(kind(Random(37)), Desk(market, [score]))
    assert 1 <= score.rank.highest < 100


def accounts_convincing(make: Callable[[], Score], kind: type[Cheat], market: Market, count: int) -> int:
    scores = [make() for _ in range(count)]
    for seed, score in enumerate(scores):
        play(kind(Random(seed)), Desk(market, [score]))
    return sum(score.convinced for score in scores)


@pytest.mark.served
def test_the_same_tricks_convince_whoever_counts_otherwise(market: Market) -> None:
    fooled = {kind for kind in CHEATS if accounts_convincing(Leaderboard, kind, market, 3)}
    assert len(fooled) >= 6
    assert accounts_convincing(StakedTwice, Copies, market, 200) >= 2
    # Jumps on known dates pay where losses are cut and units know less than a quarter.
    forgetful = Market(40, 360, jumps_of_days=90, jump_in_units=3)
    assert accounts_convincing(CutLosses, Announced, forgetful, 5) >= 3
    assert not accounts_convincing(Ranked, Announced, forgetful, 5)


def test_skill_is_proven_within_300_days() -> None:
    assert sum(is_proven_in_time(Random(seed)) for seed in range(40)) >= 24
