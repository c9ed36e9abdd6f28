"""Tables as CSV, without a database."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instruments.sheets import guard, read_sheet, unguard, write_sheet

cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
dangerous = st.builds(lambda lead, rest: lead + rest, st.sampled_from("=+-@\t\r\n'＝＋－＠"), cells)
STARTS_A_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


@given(dangerous)
def test_a_guarded_cell_reads_back_as_it_was(cell: str) -> None:
    assert unguard(guard(cell)) == cell


@given(dangerous)
def test_no_guarded_cell_starts_a_formula(cell: str) -> None:
    guarded = guard(cell)
    assert not guarded.startswith(STARTS_A_FORMULA) or float(guarded) <= 0


@pytest.mark.parametrize("number", ["-1", "-0.0001", "0", "12.5"])
def test_numbers_stay_numbers(number: str) -> None:
    assert guard(number) == number


@pytest.mark.parametrize("trick", ["-1+1", "-1e5", "+1", "-", "--1", "-.5", "-1\n=1", "-٣"])
def test_what_only_looks_like_a_number_is_guarded(trick: str) -> None:
    assert guard(trick) == f"'{trick}"


@given(st.lists(st.tuples(dangerous, cells), max_size=5))
def test_a_written_table_reads_back_as_it_was(rows: list[tuple[str, str]]) -> None:
    sheet = read_sheet(write_sheet(("a", "b"), rows).encode("utf-8-sig"), ("a", "b"))
    assert [tuple(row.cells.values()) for row in sheet] == rows


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_lines_are_where_rows_begin(rows: list[tuple[str, str]]) -> None:
    text = write_sheet(("a", "b"), rows)
    starts = [1]
    for row in ([("a", "b"), *rows])[:-1]:
        out = io.StringIO(newline="")
        csv.writer(out).writerow([guard(cell) for cell in row])
        starts.append(starts[-1] + len(list(io.StringIO(out.getvalue(), newline=""))))
    assert [row.line for row in read_sheet(text.encode(), ("a", "b"))] == starts[1:]
