"""What is harm, and how the drill's page says it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nightly.reliability.drill import report
from tests.nightly.reliability.drill.cases import FULL_DISK, disk_is_full
from tests.nightly.reliability.drill.damage import MOST_IN_A_MINUTE, Admission, Damage, harm_of
from tests.nightly.reliability.drill.loaded import Size

pytestmark = pytest.mark.row("5–8", "lost, doubled and interrupted are seen")
HARMLESS = Damage("Redis", 4, 0, 0, 1, 2, 0, 0, {"too_late": 3}, 0, "", 1.24, 0.06, 3.0, {200: 7, 0: 1}, None)
ROWS = [
    "| Redis | 0 / 0 | 2 / 1 of 4 | 1.2 |",
    "| Redis | 0 / 0 | 3 × too_late | 0 |",
    "| Redis | 0.1 |  | 1 × broken, 7 × 200 |",
]


def harmed(**changes: Any) -> Damage:
    return HARMLESS._replace(**changes)


def test_whoever_is_told_or_refused_is_not_harmed() -> None:
    assert harm_of(harmed(admission=Admission(MOST_IN_A_MINUTE, 1_800))) == []


HARMS: dict[str, dict[str, Any]] = {
    "messages lost without notice: 1": {"missed": 1},
    "messages duplicated: 1": {"doubled": 1},
    "acknowledged ticks lost: 1": {"ticks_lost": 1},
    "acknowledged ticks duplicated: 1": {"ticks_doubled": 1},
    "acknowledged signals lost: 1": {"signals_lost": 1},
    "ledger: no trigger": {"ledger_fault": "no trigger"},
    "answers 500: 1": {"statuses": {200: 7, 500: 1}},
    "requests admitted beyond the promise: 1": {"admission": Admission(MOST_IN_A_MINUTE + 1, 1_800)},
    "requests too few to exceed the promise: 1": {"admission": Admission(60, MOST_IN_A_MINUTE)},
    "seconds until all clients received data again: 11": {"back_s": 11.0},
    "seconds without an answer: 6": {"unanswered_s": 6.0},
}


@pytest.mark.parametrize("harm", HARMS)
def test_harm_is_named(harm: str) -> None:
    assert harm_of(harmed(**HARMS[harm])) == [harm]


def test_what_kept_a_case_from_its_end_has_a_row() -> None:
    def breaks() -> Iterator[Damage]:
        yield HARMLESS
        raise AssertionError("3 of 4 clients hear nothing")

    def is_not_tried() -> Iterator[Damage]:
        yield from ()
        raise report.NotTried("A full disk", "only root can make one")

    first, second = report.results_of("case", breaks())
    (left_out,) = report.results_of("case", is_not_tried())
    assert (first.harm, second.harm, left_out.harm) == ([], ["3 of 4 clients hear nothing"], [])
    assert second.row[:2] == ("case", "**did not recover**: 3 of 4 clients hear nothing")
    assert left_out.row[:2] == ("A full disk", "**not tried**: only root can make one")
    assert {len(result.row) for result in (first, second, left_out)} == {len(report.HEAD)}


def test_a_full_disk_is_not_tried_without_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (result,) = report.results_of("disk_is_full", disk_is_full(tmp_path, Size()))
    assert result.row[:2] == (FULL_DISK, "**not tried**: only root can give PostgreSQL a small disk")


def test_limits_are_told_where_they_were_watched() -> None:
    column = next(
        number for number, title in enumerate(report.HEAD) if title.startswith("Most requests admitted")
    )
    assert report.row_of(HARMLESS)[column] == ""
    assert report.row_of(harmed(admission=Admission(120, 1_934)))[column] == "120 / 1,934"


def test_scorecard_says_in_words_what_was_done() -> None:
    assert report.lines_of(HARMLESS) == [
        "Redis: missed without notice: 0; notified of a gap: 1; notified of stale prices: 2",
        "acknowledged but lost: 0 ticks, 0 signals",
        "ticks refused: 3 × too_late",
        "longest silence 1.2 s, longest time without an answer 0.1 s",
        "answers: 1 × broken, 7 × 200",
    ]
    admitted = harmed(admission=Admission(120, 1_934))
    assert report.lines_of(admitted)[-1] == "admitted within any minute: 120 (limit 60)"


def test_scorecard_prints_no_object() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reliability.md").read_text()
    assert re.findall(r"\b[A-Z]\w+\(\w+=", page) == []


def test_page_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write(page, report.tables([report.row_of(HARMLESS)]))
    before, _, rest = page.read_text().partition(report.BEGIN)
    rows, _, after = rest.partition(report.END)
    assert (before, after) == ("before\n", "\nafter\n")
    assert [line for line in rows.splitlines() if line.startswith("| Redis")] == ROWS


def test_what_was_not_tried_has_a_line_in_the_first_table_alone() -> None:
    shown = report.tables([report.row_without_numbers("A full disk", "**not tried**: no root")])
    assert [line for line in shown.splitlines() if "disk" in line] == [
        "| A full disk | **not tried**: no root |  |  |"
    ]
