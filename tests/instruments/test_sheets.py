"""Tables as CSV, the values that their cells stand for, and the fields that staff can write at all."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from hypothesis import given
from hypothesis import strategies as st

from instruments.admin import InstrumentAdmin
from instruments.models import Instrument
from instruments.saving import INSTRUMENTS, read_cell, write_cell
from instruments.sheets import guard, read_sheet, unguard, write_sheet

cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
dangerous = st.builds(lambda lead, rest: lead + rest, st.sampled_from("=+-@\t\r\n'＝＋－＠"), cells)
STARTS_A_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
FIELDS = {field.name for field in Instrument._meta.concrete_fields if field.name != "id"}
NULLABLE = (
    models.DecimalField(max_digits=9, decimal_places=4, null=True),
    models.PositiveIntegerField(null=True),
    models.BooleanField(null=True),
    models.CharField(max_length=9, null=True),
    models.ForeignKey(Instrument, on_delete=models.CASCADE, null=True),
)


@given(dangerous)
def test_a_guarded_cell_starts_no_formula_and_reads_back_as_it_was(cell: str) -> None:
    guarded = guard(cell)
    assert not guarded.startswith(STARTS_A_FORMULA) or float(guarded) <= 0
    assert unguard(guarded) == cell


@pytest.mark.parametrize(
    ("numbers", "prefix"),
    [
        (("-1", "-0.0001", "0", "12.5"), ""),
        (("-1+1", "-1e5", "+1", "-", "--1", "-.5", "-1\n=1", "-٣"), "'"),
    ],
)
def test_numbers_stay_numbers_and_what_only_looks_like_one_is_guarded(
    numbers: tuple[str, ...], prefix: str
) -> None:
    assert [guard(number) for number in numbers] == [prefix + number for number in numbers]


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


@pytest.mark.parametrize("field", NULLABLE, ids=lambda field: type(field).__name__)
def test_an_empty_cell_of_a_field_that_may_be_missing_is_none(field: Any) -> None:
    assert read_cell(field, "", {}) is None


def test_a_value_is_written_as_people_write_it() -> None:
    values = (None, Decimal("0.00010000"), Decimal(100_000), True, 5)
    assert [write_cell(value) for value in values] == ["", "0.0001", "100000", "true", "5"]


def test_the_table_and_the_form_have_every_field() -> None:
    assert set(INSTRUMENTS.columns) == FIELDS, "give it a column in INSTRUMENTS of instruments/saving.py"
    assert set(flatten_fieldsets(InstrumentAdmin.fieldsets)) == FIELDS, "give it a place in InstrumentAdmin"
