"""A field is added with what the database fills in for an older version, and without reading all rows."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import migrations, models
from django.db.models import F, Field
from django.db.models.functions import Now

from .made import LISTED, noted

TO = "news.other"
KEY = ("id", models.BigAutoField(primary_key=True))
DOUBLED: Field[Any, Any] = models.GeneratedField(
    expression=F("id") * 2, output_field=models.IntegerField(), db_persist=True, null=True
)


@pytest.mark.parametrize(
    ("field", "why"),
    [
        (models.CharField(max_length=10), "give it a db_default"),
        (models.CharField(max_length=10, default=""), "give it a db_default"),
        (models.DateTimeField(db_default=Now()), "add a field that may be NULL"),
        (DOUBLED, "add a field that may be NULL"),
        (models.IntegerField(null=True, db_index=True), "with an index"),
        (models.IntegerField(null=True, unique=True), "which is unique, and reads all rows"),
        (models.ForeignKey(TO, models.CASCADE, null=True, db_constraint=False), "with an index"),
        (models.PositiveIntegerField(null=True), "(IntegerField has none), and reads all rows"),
        (models.ForeignKey(TO, models.CASCADE, null=True, db_index=False), "from deleting what it refers to"),
        (
            models.ForeignKey("self", models.CASCADE, null=True, db_index=False),
            "from deleting what it refers to",
        ),
        (models.ManyToManyField(TO), "from deleting what it refers to"),
    ],
)
def test_what_an_older_version_notices_is_refused(field: Field[Any, Any], why: str) -> None:
    (found,) = noted(migrations.AddField("thing", "new", field))
    assert why in found


@pytest.mark.parametrize(
    "field",
    [
        models.CharField(max_length=9, db_default=""),
        models.IntegerField(null=True),
        models.ForeignKey(TO, models.CASCADE, null=True, db_index=False, db_constraint=False),
        models.ManyToManyField(TO, db_constraint=False),
        models.ManyToManyField(TO, through="news.between"),
    ],
)
def test_what_it_does_not_notice_is_let_through(field: Field[Any, Any]) -> None:
    assert noted(migrations.AddField("thing", "new", field)) == []


def test_new_table_that_refers_to_an_old_one_is_refused() -> None:
    to = models.ForeignKey(TO, models.CASCADE)
    made = migrations.CreateModel("new", [KEY, ("to", to)])
    added = [migrations.CreateModel("new", [KEY]), migrations.AddField("new", "to", to)]
    for operations in ([made], added):
        (found,) = noted(*operations)
        assert "from deleting what it refers to: use db_constraint=False; or say in" in found
        assert noted(*operations, harmless=LISTED) == []


def test_new_tables_refer_to_each_other() -> None:
    first = migrations.CreateModel("first", [KEY, ("to", models.ForeignKey("self", models.CASCADE))])
    second = migrations.CreateModel("second", [KEY, ("to", models.ForeignKey("news.First", models.CASCADE))])
    assert noted(first, second) == []
