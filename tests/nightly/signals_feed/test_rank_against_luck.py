"""What the rank promises, over many markets and accounts. Seeded, so that only a change of the rank or of the
cheats changes a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from tests.nightly.figures import note
from tests.signals_feed.publishers.cheats import CHEATS, Announced, Cheat, Copies
from tests.signals_feed.publishers.luck import Desk, Market, Score, play
from tests.signals_feed.publishers.scores import (
    CutLosses,
    Leaderboard,
    Ranked,
    StakedTwice,
    is_proven_in_time,
)

ACCOUNTS = 200
DAYS = 500
RUNS = 100
RUNS_OF_CONTROLS = 20
HONEST = 2_000


def is_fooled(
    make: Callable[[], Score], run: int, kinds: Sequence[type[Cheat]] = CHEATS, market: Market | None = None
) -> bool:
    """Whether any of the accounts ever convinces it."""
    market = market or Market(run, DAYS)
    for account in range(ACCOUNTS):
        score = make()
        play(kinds[account % len(kinds)](Random(run * ACCOUNTS + account)), Desk(market, [score]))
        if score.convinced:
            return True
    return False


def shown(count: int, of: int) -> str:
    return f"{count} of {of:,}, {count / of:.1%}"


def test_luck_is_hardly_ever_proven() -> None:
    fooled = sum(is_fooled(Ranked, run) for run in range(RUNS))
    held = fooled <= 0.05 * RUNS
    note(
        f"Runs of {DAYS} days in which any of {ACCOUNTS} publishers without skill is proven",
        "at most 5 %",
        shown(fooled, RUNS),
        held=held,
    )
    assert held


def test_other_ways_of_counting_are_fooled() -> None:
    """The controls: without them, cheats that are too weak would look like a rank that is strong."""
    runs = range(RUNS_OF_CONTROLS)
    controls = {
        "the leaderboard of before": sum(is_fooled(Leaderboard, run) for run in runs),
        "stakes on what is staked": sum(is_fooled(StakedTwice, run, (Copies,)) for run in runs),
        "losses cut, jumps of 90 days": sum(
            is_fooled(CutLosses, run, (Announced,), Market(run, DAYS, jumps_of_days=90, jump_in_units=3))
            for run in runs
        ),
    }
    for name, fooled in controls.items():
        note(
            f"The same, judged by {name}",
            "more than half",
            shown(fooled, RUNS_OF_CONTROLS),
            held=fooled > RUNS_OF_CONTROLS / 2,
        )
    assert min(controls.values()) > RUNS_OF_CONTROLS / 2


def test_skill_is_proven_within_300_days() -> None:
    proven = sum(is_proven_in_time(Random(seed)) for seed in range(HONEST))
    held = proven >= 0.75 * HONEST
    note(
        "Publishers with 0.3 R a day, deviation 1 R, who are proven within 300 days",
        "at least 75 %",
        shown(proven, HONEST),
        held=held,
    )
    assert held
