"""Whoever changes a field keeps what an older version reads and writes, and does not lock it out."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import models
from django.db.models import Field

from .made import LISTED, noted_of_change

NUMBER = models.IntegerField
TO = "news.other"


def text(length: int = 10, **more: Any) -> Field[Any, Any]:
    return models.CharField(max_length=length, **more)


def price(digits: int, places: int) -> Field[Any, Any]:
    return models.DecimalField(max_digits=digits, decimal_places=places)


def key(**more: Any) -> Field[Any, Any]:
    return models.ForeignKey(TO, models.CASCADE, **more)


@pytest.mark.parametrize(
    ("was", "field", "why"),
    [
        (NUMBER(), NUMBER(db_column="that"), "renames the column of thing.it"),
        (key(), key(db_column="that"), "renames the column of thing.it"),
        (text(10), text(9), "from varchar(10) to varchar(9): all rows are written again"),
        (models.TextField(), text(9), "from text to varchar(9)"),
        (price(20, 8), price(10, 2), "from numeric(20, 8) to numeric(10, 2)"),
        (price(20, 8), price(20, 9), "from numeric(20, 8) to numeric(20, 9)"),
        (text(), NUMBER(), "from varchar(10) to integer"),
        (NUMBER(), models.BigIntegerField(), "from integer to bigint"),
        (models.BigIntegerField(), key(), "add another field, copy, and contract"),
        (models.BigAutoField(), models.BigIntegerField(), "to bigint: all rows are written again"),
        (NUMBER(), NUMBER(db_index=True), "makes an index of thing.it"),
        (text(), models.SlugField(max_length=10), "makes an index of thing.it"),
        (NUMBER(unique=True, db_index=True), NUMBER(db_index=True), "makes an index of thing.it"),
        (NUMBER(), NUMBER(unique=True), "may write a value twice"),
        (NUMBER(), NUMBER(unique=True), "makes thing.it unique, and reads all rows"),
        (NUMBER(unique=True), NUMBER(), "ON CONFLICT of an older version needs it"),
        (models.OneToOneField(TO, models.CASCADE), key(), "ON CONFLICT of an older version needs it"),
        (NUMBER(db_index=True), NUMBER(), "takes away the index of thing.it"),
        (text(db_index=True), models.TextField(db_index=True), "its index is made anew"),
        (text(unique=True), text(20, unique=True), "the foreign keys to it are made anew"),
        (NUMBER(null=True), NUMBER(), "may still write NULL"),
        (NUMBER(null=True), NUMBER(db_default=0), "may still write NULL"),
        (NUMBER(null=True), NUMBER(), "makes thing.it NOT NULL, and reads all rows"),
        (NUMBER(), NUMBER(null=True), "does not expect to read"),
        (NUMBER(db_default=0), NUMBER(), "what the database fills in for thing.it"),
        (NUMBER(db_default=0, null=True), NUMBER(null=True), "what the database fills in for thing.it"),
        (NUMBER(db_default=0), NUMBER(db_default=1), "what the database fills in for thing.it"),
        (NUMBER(), models.PositiveIntegerField(), "may write rows that break it"),
        (NUMBER(), models.PositiveIntegerField(), "adds a check to thing.it, and reads all rows"),
        (key(), key(null=True), "makes its foreign key anew, and reads all rows"),
        (key(), key(default=1), "makes its foreign key anew, and reads all rows"),
        (models.PositiveIntegerField(), NUMBER(), "removes the check of thing.it"),
        (key(), key(db_constraint=False), "removes the constraint of the foreign key thing.it"),
        (key(db_constraint=False), key(), "keeps an older version from deleting"),
        (key(), models.ForeignKey("news.thing", models.CASCADE), "changes to of thing.it"),
        (
            text(),
            text(db_collation="C"),
            "changes db_collation of thing.it, of which this check knows nothing",
        ),
        (
            models.ManyToManyField(TO),
            models.ManyToManyField(TO, db_table="that"),
            "changes db_table of thing.it",
        ),
    ],
)
def test_what_an_older_version_notices_is_refused(
    was: Field[Any, Any], field: Field[Any, Any], why: str
) -> None:
    assert any(why in each for each in noted_of_change(was, field))


@pytest.mark.parametrize(
    ("was", "field"),
    [
        (text(10), text(20)),
        (text(10), models.TextField()),
        (text(10), models.URLField(max_length=20, help_text="Where it is.")),
        (price(10, 2), price(20, 2)),
        (NUMBER(), NUMBER(default=1, help_text="How many.", verbose_name="number")),
        (NUMBER(), NUMBER(db_default=0)),
        (NUMBER(), NUMBER(db_column="it")),
        (models.DateTimeField(), models.DateTimeField(auto_now=True)),
        (key(), models.ForeignKey(TO, models.PROTECT, related_name="+", db_column="it_id")),
        (models.ManyToManyField(TO), models.ManyToManyField(TO, blank=True)),
    ],
)
def test_what_it_does_not_notice_is_let_through(was: Field[Any, Any], field: Field[Any, Any]) -> None:
    assert noted_of_change(was, field) == []


@pytest.mark.parametrize(
    ("was", "field"),
    [(NUMBER(), NUMBER(db_column="that")), (price(20, 8), price(10, 2)), (NUMBER(), NUMBER(db_index=True))],
)
def test_neither_a_release_nor_a_reason_excuses_what_can_be_done_otherwise(
    was: Field[Any, Any], field: Field[Any, Any]
) -> None:
    assert len(noted_of_change(was, field, contracts="1.4.0", harmless=LISTED)) == 1


def test_not_null_takes_a_release_that_writes_none_and_a_reason_for_reading_all_rows() -> None:
    was, field = NUMBER(null=True), NUMBER()
    (locks,) = noted_of_change(was, field, contracts="1.4.0")
    (breaks,) = noted_of_change(was, field, harmless=LISTED)
    assert "reads all rows" in locks
    assert "may still write NULL" in breaks
    assert noted_of_change(was, field, contracts="1.4.0", harmless=LISTED) == []
