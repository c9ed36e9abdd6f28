"""The scorecard covers all faults: measured here, tested elsewhere by a test that exists, or explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import rows, scorecard, sections
from .words import in_words, sentence, variant

PAGE = (rows.ROOT / "docs" / "reliability.md").read_text()


def line(row: str, shown: str, measured: str = "", **more: str) -> scorecard.Line:
    return scorecard.Line(row, shown, more.get("variant", ""), more.get("target", "none"), measured, "")


def test_the_page_says_where_each_fault_is_shown() -> None:
    assert list(rows.TITLES) == list(range(1, 80))
    shown = [line.split(" | ") for line in scorecard.where_shown().splitlines()[2:]]
    assert [title.removeprefix("| ") for title, *_ in shown] == list(rows.TITLES.values())
    assert {place for _, places, _ in shown for place in places.split(", ")} == set(scorecard.COMMANDS)
    assert [title for title, _, by in shown if by == "|"] == []


def test_every_mark_has_a_section_with_a_title_in_words() -> None:
    files = [path for folder in rows.FOLDERS for path in (rows.ROOT / folder).rglob("test_*.py")]
    assert {row for path in files for row in rows.rows_in(path)} == set(sections.TITLES)
    assert [title for title in sections.ROWS if not re.match(r"[A-Z].*[a-z]{4}", title)] == []


def test_what_is_named_exists() -> None:
    named = {test for tests in rows.ELSEWHERE.values() for test in tests}
    assert [test for test in named if not rows.exists(test)] == []


@pytest.mark.parametrize(
    ("row", "numbers"),
    [("9", {9}), ("1, 2", {1, 2}), ("12–14", {12, 13, 14}), ("", set()), ("client: Node ws", set())],
)
def test_rows_are_read_as_they_are_written(row: str, numbers: set[int]) -> None:
    assert rows.numbers_in(row) == numbers


def test_results_are_written_in_words_below_their_titles(tmp_path: Path) -> None:
    page = tmp_path / "reliability.md"
    assert "no such file" in scorecard.fault_of(page)
    page.write_text("\nmore\n".join("\n".join(scorecard.marks(part)) for part in scorecard.PARTS))
    assert scorecard.fault_of(page) == ""
    lines = [
        line("3", sentence("a_redis_replica_takes_over"), in_words("closed with {1012: 3, 0: 1}")),
        *[line("3", "It is closed", variant=variant(kind)) for kind in ("embedded", "engine-command0")],
        line("3", "Control a crowd is noticed", "**FAILED** admitted: 100"),
    ]
    scorecard.write(page, "gate", scorecard.text(lines))
    assert page.read_text().partition("\nmore\n")[0].splitlines()[1:-1] == [
        *("### Stream limits under a crowd", "", "Target: none.", ""),
        "- A Redis replica takes over: closed with 3 × 1012, 1 × no answer.",
        *("- It is closed (2 cases).", "", "### Checks of the checks", ""),
        "These tests plant a fault or remove a safeguard, to prove that the tests above would notice. 0 of 1"
        " noticed it. Those with a number to",
        *("report:", "", "- A crowd is noticed: **FAILED** admitted: 100."),
    ]


def test_page_has_no_value_of_python() -> None:
    assert re.findall(r"\{[^}]*\}|: \[[\d']", PAGE) == []
