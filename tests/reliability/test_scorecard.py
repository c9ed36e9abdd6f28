"""The scorecard covers all faults: measured here, tested elsewhere by a test that exists, or explained."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from . import rows, scorecard, sections
from .words import in_words, sentence, variant

NAMED = sorted({test for tests in rows.ELSEWHERE.values() for test in tests})


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
    marked = {row for path in files for row in rows.rows_in(path)}

    assert marked - set(sections.TITLES) == set()
    assert [title for title in sections.ROWS if not re.match(r"[A-Z].*[a-z]{4}", title)] == []


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        *[("embedded-chatty", "embedded, chatty"), ("lose_all", "lose all"), ("/ws/market", "/ws/market")],
        *[("engine-command0", "engine"), ("serve-200 0", "serve"), ("during_ms0-expected0", ""), ("199", "")],
        *[(r"\\s+$", ""), ("left0-right0-0.009", ""), ("", ""), ("1.1 without host", "1.1 without host")],
    ],
)
def test_parameters_that_are_no_words_are_not_printed(parameters: str, words: str) -> None:
    assert variant(parameters) == words


def test_page_has_titles_in_words_and_no_raw_parameter() -> None:
    card = "".join(
        PAGE.partition(begin)[2].partition(end)[0] for begin, end in map(scorecard.marks, scorecard.COMMANDS)
    )

    titles = re.findall(r"^### (.*)$", card, re.MULTILINE)
    assert set(titles) <= {*sections.ROWS, "Checks of the checks"}
    raw = r"^\*\*.*|\b[a-z_]+-?(?:command|expected|faults|left|right)\d|-\d+ \d\)"
    assert re.findall(raw, card, re.MULTILINE) == []
    assert [words for words in (": holds", "untold", "told ") if words in card] == []


def test_names_of_tests_are_written_as_sentences() -> None:
    assert sentence("a_redis_replica_takes_over") == "A Redis replica takes over"
    assert sentence("process_stops_on_ctrl_c") == "Process stops on Ctrl+C"


def test_parameters_of_one_test_are_one_entry() -> None:
    lines = [line("3", "It is closed", variant=kind) for kind in ("a", "b", "c")]
    assert scorecard.bullets(lines) == "- It is closed (3 cases)."
    short = [line("3", "It is closed", f"lost: {number}", variant=f"v{number}") for number in (1, 2)]
    assert scorecard.bullets(short) == "- It is closed: v1: lost: 1; v2: lost: 2."
    long = [each._replace(measured=f"{each.variant}: {'x' * 70}") for each in short]
    assert scorecard.bullets(long).splitlines()[:2] == ["- It is closed:", f"  - v1: {'x' * 70}."]


def test_checks_are_counted_and_their_numbers_kept() -> None:
    checks = [
        line("1, 2", "Control a crowd is noticed", "admitted: 100"),
        *[line("5–8", "Harm is named"), line("1, 2", "Control it fails", "**FAILED** lost: 1")],
    ]
    shown = scorecard.text([*checks, line("1, 2", "The limit is exact", "60")])
    assert shown.startswith("### Rate limits under a crowd\n\nTarget: none.\n\n- The limit is exact: 60.\n\n")
    assert "2 of 3 noticed it." in shown
    assert "\n- A crowd is noticed: admitted: 100.\n- It fails: **FAILED** lost: 1." in shown


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
    page = tmp_path / "reliability.md"
    assert "no such file" in scorecard.fault_of(page)
    page.write_text("words")
    assert scorecard.marks("gate")[0] in scorecard.fault_of(page)
    page.write_text(
        "words\n" + "\nmore\n".join("\n".join(map(str, scorecard.marks(part))) for part in scorecard.PARTS)
    )
    assert scorecard.fault_of(page) == ""


def test_each_place_writes_its_own_part_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "reliability.md"
    page.write_text("\nmore\n".join("\n".join(scorecard.marks(part)) for part in scorecard.PARTS))
    for place in scorecard.COMMANDS:
        scorecard.write(
            page, place, scorecard.text([line("3", f"What {place} shows", "0", target="none lost")])
        )
    scorecard.write(page, "gate", scorecard.text([line("3", "What it does", "0 of 3", target="none lost")]))
    gate, nightly, where = page.read_text().split("\nmore\n")
    assert "\n### Stream limits under a crowd\n\nTarget: none lost.\n\n- What it does: 0 of 3.\n" in gate
    assert "\n- What nightly shows: 0.\n" in nightly
    assert f"\n{scorecard.where_shown()}\n" in where


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("closed with {1012: 3, 1006: 1}; refused {}", "closed with 3 × 1012, 1 × 1006; refused none"),
        ("answered {200: 3, 0: 1}", "answered 3 × 200, 1 × no answer"),
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
    assert re.findall(r"\{[^}]*\}|: \[[\d']", PAGE) == []


def test_head_says_of_which_run_it_is(tmp_path: Path) -> None:
    head = scorecard.head(datetime(2026, 11, 23, 23, 5, tzinfo=UTC), "at commit `1234`", 7, "gate")
    assert head.startswith(
        "Results of `make reliability` (7 tests), which ended on 2026-11-23 at 23:05 UTC,"
        " at commit `1234`, on "
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
