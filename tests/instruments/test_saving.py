"""Cells of a table and the values they stand for, and the fields that staff can write at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models

from instruments.admin import InstrumentAdmin
from instruments.models import Instrument
from instruments.saving import INSTRUMENTS, read_cell, write_cell

pytestmark = pytest.mark.services

FIELDS = [field.name for field in Instrument._meta.concrete_fields if field.name != "id"]
# A field that only programs write stands here with its reason.
NOT_IN_THE_TABLE: dict[str, str] = {}
NOT_IN_THE_FORM: dict[str, str] = {}
NULLABLE = (
    models.DecimalField(max_digits=9, decimal_places=4, null=True),
    models.PositiveIntegerField(null=True),
    models.BooleanField(null=True),
    models.CharField(max_length=9, null=True),
    models.ForeignKey(Instrument, on_delete=models.CASCADE, null=True),
)


@pytest.mark.parametrize("field", NULLABLE, ids=lambda field: type(field).__name__)
def test_an_empty_cell_of_a_field_that_may_be_missing_is_none(field: Any) -> None:
    assert read_cell(field, "") is None


@pytest.mark.parametrize(
    ("value", "cell"),
    [(None, ""), (Decimal("0.00010000"), "0.0001"), (Decimal(100_000), "100000"), (True, "true"), (5, "5")],
)
def test_a_value_is_written_as_people_write_it(value: object, cell: str) -> None:
    assert write_cell(value) == cell


def test_the_table_has_every_field() -> None:
    assert sorted(INSTRUMENTS.columns) == sorted(set(FIELDS) - NOT_IN_THE_TABLE.keys()), (
        "give the field a column in INSTRUMENTS of instruments/saving.py"
    )


def test_the_form_has_every_field() -> None:
    assert sorted(flatten_fieldsets(InstrumentAdmin.fieldsets)) == sorted(
        set(FIELDS) - NOT_IN_THE_FORM.keys()
    ), "give the field a place in the fieldsets of instruments/admin.py"
