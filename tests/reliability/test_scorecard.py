"""The scorecard names all rows: measured here, shown by a test that exists, or with the reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import rows, scorecard

NAMED = sorted({test for tests in rows.ELSEWHERE.values() for test in tests})


def test_no_row_is_blank() -> None:
    lines = scorecard.not_measured([])

    assert [line.row for line in lines] == [str(number) for number in range(1, 80)]
    assert [line for line in lines if not line.shown or not line.measured] == []


def test_a_row_that_was_measured_is_not_named_again() -> None:
    measured = scorecard.Line("12–14", "resuming", "gaps 0", "gaps 0", "")

    left = {line.row for line in scorecard.not_measured([measured])}

    assert left == {str(number) for number in range(1, 80)} - {"12", "13", "14"}


def test_what_is_named_exists() -> None:
    assert [test for test in NAMED if not rows.exists(test)] == []


@pytest.mark.parametrize("test", ["tests/nowhere.py::test_it", "tests/contract/test_paths.py::test_nothing"])
def test_control_what_does_not_exist_is_noticed(test: str) -> None:
    assert not rows.exists(test)


@pytest.mark.parametrize(
    ("row", "numbers"),
    [("9", {9}), ("1, 2", {1, 2}), ("12–14", {12, 13, 14}), ("", set()), ("client: Node ws", set())],
)
def test_rows_are_read_as_they_are_written(row: str, numbers: set[int]) -> None:
    assert rows.numbers_in(row) == numbers


def test_a_place_for_the_scorecard_is_looked_at_before_the_run(tmp_path: Path) -> None:
    place = tmp_path / "reliability.md"
    assert "no such file" in scorecard.fault_of(place)
    place.write_text("words")
    assert scorecard.BEGIN in scorecard.fault_of(place)
    place.write_text(f"words\n{scorecard.BEGIN}\n{scorecard.END}\nmore words")
    assert scorecard.fault_of(place) == ""
    scorecard.write(place, [scorecard.Line("1", "shown", "0", "0", "")])
    assert "| 1 | shown | 0 | 0 |  |" in place.read_text()
    assert place.read_text().endswith("more words")
