from __future__ import annotations

import pytest

from analysis.answer_cache import KEPT_MS, CachedAnswer


@pytest.mark.parametrize(
    ("age_ms", "is_fresh"),
    [(0, True), (KEPT_MS - 1, True), (KEPT_MS, False), (1 - KEPT_MS, True), (-KEPT_MS, False)],
    ids=["new", "old", "too old", "the clock was set back", "the clock was set back by more than it is kept"],
)
def test_answer_is_kept_for_five_minutes_whichever_way_the_clock_is_set(age_ms: int, is_fresh: bool) -> None:
    assert CachedAnswer(1_000_000, b"").is_fresh(1_000_000 + age_ms) is is_fresh
