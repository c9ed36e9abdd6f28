"""How the chart walks back through what is stored, while /history runs from old to new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .modules import evaluate

# A service with these minutes, which answers as /history does.
WALK = """
const { barsBefore } = all;
const asked = [];
const ask = async (start, end) => {
  asked.push([start, end]);
  const within = given.minutes.filter((minute) => 60000 * minute >= start && 60000 * minute < end);
  const page = within.slice(0, 1000);
  const ohlcv = page.map((minute) => ({ time: new Date(60000 * minute).toISOString(), close: 1 }));
  return { ohlcv, next: within.length > page.length ? "more" : null };
};
const bars = await barsBefore(ask, 60000 * given.before, 60000, 60000 * given.first);
return { minutes: bars.map(({ time }) => time / 60), asked };
"""
JOIN = """
const [before, now] = given.map((times) => times.map((time) => ({ time })));
return all.joined(before, now).map(({ time }) => time);
"""


@pytest.fixture
def walk(tmp_path: Path) -> Any:
    def run(minutes: list[int], before: int, first: int | None = None) -> Any:
        given = {"minutes": minutes, "before": before, "first": minutes[0] if first is None else first}
        return evaluate(tmp_path, "chart/history.js", WALK, given)

    return run


def test_a_thousand_bars_before_are_one_request(walk: Any) -> None:
    found = walk(list(range(5_000)), before=4_000)

    assert found["minutes"] == list(range(3_000, 4_000))
    assert len(found["asked"]) == 1


def test_weekend_is_crossed_in_ever_wider_windows(walk: Any) -> None:
    friday = list(range(2_000))

    found = walk(friday + list(range(5_500, 6_000)), before=5_500)

    assert found["minutes"] == friday
    assert [start // 60_000 for start, _ in found["asked"][:3]] == [4_500, 2_500, 0]


def test_window_of_several_pages_is_read_to_its_end(walk: Any) -> None:
    found = walk(list(range(3_000)), before=6_999)

    assert found["minutes"] == list(range(3_000))
    assert found["asked"][-1][0] == 60_000 * 1_999 + 1


def test_walk_ends_where_nothing_is_left(walk: Any) -> None:
    assert walk(list(range(100)), before=0)["minutes"] == []
    assert walk([5_000], before=5_000, first=0)["minutes"] == []


@pytest.mark.parametrize(
    ("before", "now", "shown"), [([1, 2, 3, 4], [3, 4, 5], [1, 2, 3, 4, 5]), ([1, 2], [4, 5], [4, 5])]
)
def test_older_bars_stay_unless_others_are_missing_in_between(
    tmp_path: Path, before: list[int], now: list[int], shown: list[int]
) -> None:
    assert evaluate(tmp_path, "chart/history.js", JOIN, [before, now]) == shown
