"""The scorecard names all rows: measured here, shown by a test that exists, or with the reason why not."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from . import rows, scorecard
from .words import in_words

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
    scorecard.write(place, scorecard.text([scorecard.Line("1", "what it does (a)", "lost 0", "0 of 3", "")]))
    assert "\n**1** Target: lost 0\n\n- what it does (a): 0 of 3\n" in place.read_text()
    assert place.read_text().endswith("more words")


def test_lines_of_a_row_with_one_target_are_one_list() -> None:
    lines = [
        scorecard.Line("2", "slow", "1 s", "3 s", "7"),
        scorecard.Line("1", "lost", "0", "0", ""),
        scorecard.Line("2", "quick", "1 s", "0.1 s", ""),
        scorecard.Line("2", "told", "0", "0", ""),
    ]
    assert scorecard.text(lines).split("\n\n") == [
        *("**1** Target: 0", "- lost: 0"),
        *("**2** Target: 0", "- told: 0"),
        *("**2** Target: 1 s", "- quick: 0.1 s\n- slow: 3 s (seed 7)"),
    ]


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("closed with {1012: 3, 1006: 1}; refused {}", "closed with 3 × 1012, 1 × 1006; refused none"),
        ("pushes {'accepted': 17000}", "pushes accepted: 17,000"),
        ("{('closed', 'stop_loss'): 2, ('active', ''): 1}", "closed stop_loss: 2, active: 1"),
        ("{'h2c': [401, 200]}, [60, 60]", "h2c: 401 and 200, 60, 60"),
        ("{5.0: 'told', 118.5: 'told'}", "5: told, 118.5: told"),
        ("keys ({'eu'}, {'eu'}), in [memory-10] {", "keys (eu, eu), in [memory-10] {"),
    ],
)
def test_values_are_written_as_people_write_them(printed: str, words: str) -> None:
    assert in_words(printed) == words


def test_page_has_no_value_of_python() -> None:
    page = (rows.ROOT / "docs" / "reliability.md").read_text()
    assert re.findall(r"\{[^}]*\}|: \[[\d']", page) == []


def test_head_says_of_which_run_it_is(tmp_path: Path) -> None:
    head = scorecard.head(datetime(2026, 11, 23, 23, 5, tzinfo=UTC), "at commit `1234`", 7, is_full=False)
    assert head.startswith(
        "Of `make reliability`, 7 tests, ended on 2026-11-23 at 23:05 UTC, at commit `1234`, on "
    )
    assert scorecard.state_of(tmp_path) == "of code that is in no repository"
    commit = scorecard.git(rows.ROOT, "rev-parse", "HEAD")
    assert scorecard.state_of(rows.ROOT).startswith(f"at commit `{commit[:10]}`")


def test_changes_that_are_not_committed_are_told(tmp_path: Path) -> None:
    code, page = tmp_path / "code.py", tmp_path / "docs/page.md"
    page.parent.mkdir()
    code.touch()
    page.touch()
    as_somebody = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for arguments in (("init",), ("add", "."), (*as_somebody, "commit", "--no-gpg-sign", "-m", "all")):
        scorecard.git(tmp_path, *arguments)
    page.write_text("changed")
    assert not scorecard.state_of(tmp_path).endswith("with changes that are not committed")
    code.write_text("changed")
    assert scorecard.state_of(tmp_path).endswith("with changes that are not committed")
