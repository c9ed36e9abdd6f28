"""A migration locks as long as its transaction lasts, and one without a transaction can be applied again."""

from __future__ import annotations

import pytest
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models import Index

from core.schema import ConcurrentIndex

from .made import LISTED, noted

KEY = ("id", models.BigAutoField(primary_key=True))
ADDED = migrations.AddField("thing", "new", models.IntegerField(null=True))
INDEX = ConcurrentIndex("thing", Index(fields=["old"], name="by_it"))
CODE = migrations.RunPython(lambda apps, editor: None)
SQL = migrations.RunSQL("UPDATE news_thing SET new = 1")


@pytest.mark.parametrize("computes", [CODE, SQL])
def test_rows_are_computed_in_a_migration_of_their_own(computes: Operation) -> None:
    (found,) = noted(ADDED, computes, harmless=LISTED)
    assert "give the rows a migration of their own" in found
    nested = migrations.SeparateDatabaseAndState(database_operations=[computes])
    assert noted(ADDED, nested, harmless=LISTED) == [found]


def test_rows_of_a_new_table_are_computed_with_it() -> None:
    assert noted(migrations.CreateModel("new", [KEY]), CODE, harmless=LISTED) == []


def test_concurrent_index_takes_a_migration_without_a_transaction() -> None:
    (found,) = noted(INDEX)
    assert "say atomic = False" in found
    assert noted(INDEX, atomic=False) == []


@pytest.mark.parametrize(
    "operations", [[ADDED], [ADDED, INDEX], [migrations.CreateModel("new", [KEY]), INDEX]]
)
def test_what_cannot_be_applied_twice_takes_a_transaction(operations: list[Operation]) -> None:
    (found,) = noted(*operations, atomic=False)
    assert "may stop half way" in found


@pytest.mark.parametrize("computes", [CODE, SQL])
def test_rows_are_filled_in_without_a_transaction(computes: Operation) -> None:
    assert noted(computes, atomic=False, harmless=LISTED) == []
