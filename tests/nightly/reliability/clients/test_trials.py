"""The measure of harm finds harm that is there each time, and no other."""

from __future__ import annotations

import pytest

from tests.nightly.reliability.clients.meters import MOST_TRIALS, Heard, Trial, tried

pytestmark = pytest.mark.row("9–11, 37", "harm that is done each time is seen, and no other")


def heard(p99_ms: float) -> Heard:
    return Heard(frames=100, missed=0, ended=0, refused=0, p50_ms=1.0, p99_ms=p99_ms, most_ms=p99_ms)


@pytest.mark.parametrize(
    ("during_ms", "expected"),
    [([60.0], [True]), ([200.0, 60.0], [False, True]), ([200.0] * 9, [False] * MOST_TRIALS)],
)
def test_harm_counts_where_it_is_done_each_time(during_ms: list[float], expected: list[bool]) -> None:
    coming = iter(during_ms)
    trials = tried(lambda: Trial(heard(20.0), heard(next(coming)), heard(10.0)))
    assert [trial.is_unharmed for trial in trials] == expected
