"""What an older version cannot live with is refused, unless a release or a reason answers for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.contrib.postgres.operations import (
    AddConstraintNotValid,
    AddIndexConcurrently,
    BtreeGinExtension,
    RemoveIndexConcurrently,
)
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

from .made import LISTED, SHORT, noted

NUMBER = models.IntegerField(null=True)
KEY = ("id", models.BigAutoField(primary_key=True))
INDEX = models.Index(fields=["old"], name="by_it")
LONG = models.Q(("old__gt", "x"), models.Q(("old__lt", models.F("old"))), _connector="OR")
TWICE = models.UniqueConstraint(fields=["old"], name="not_twice")
POSITIVE = models.CheckConstraint(condition=models.Q(new__gt=0), name="positive")


def in_database(*operations: Operation) -> Operation:
    return migrations.SeparateDatabaseAndState(database_operations=operations)


def code(apps: Any, editor: Any) -> None:
    editor.execute("DROP TABLE news_thing")


class Unlike(migrations.AlterModelOptions):
    """It may do more than what it is derived from."""


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (migrations.RemoveField("thing", "old"), "still uses it"),
        (migrations.DeleteModel("thing"), "still uses it"),
        (migrations.RemoveIndex("thing", "by_old"), "still uses it"),
        (RemoveIndexConcurrently("thing", "by_old"), "still uses it"),
        (migrations.RemoveConstraint("thing", "one_old"), "ON CONFLICT of an older version needs it"),
        (migrations.RemoveConstraint("thing", "some_old"), "relies on it to refuse rows"),
        (migrations.RenameField("thing", "old", "new"), "knows the old name"),
        (migrations.RenameModel("thing", "matter"), "knows the old name"),
        (migrations.AlterModelTable("thing", "matter"), "knows the old name"),
        (migrations.AddIndex("thing", INDEX), "nobody may write meanwhile"),
        (AddIndexConcurrently("thing", INDEX), "core.schema.ConcurrentIndex"),
        (migrations.AlterUniqueTogether("thing", {("id", "old")}), "name each in Meta.constraints"),
        (migrations.AlterUniqueTogether("thing", set()), "name each in Meta.constraints"),
        (migrations.AlterOrderWithRespectTo("thing", "old"), "knows nothing of AlterOrderWithRespectTo"),
        (AddConstraintNotValid("thing", POSITIVE), "knows nothing of AddConstraintNotValid"),
        (BtreeGinExtension(), "knows nothing of BtreeGinExtension"),
        (Unlike("thing", {}), "knows nothing of Unlike"),
        (migrations.RunPython(code), "runs code"),
        (in_database(migrations.RemoveField("thing", "old")), "still uses it"),
        (in_database(in_database(migrations.RunSQL("DELETE FROM news_thing"))), "runs SQL"),
    ],
)
def test_what_the_last_release_cannot_live_with_is_refused(operation: Operation, why: str) -> None:
    (found,) = noted(operation)
    assert why in found


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE news_thing ADD COLUMN new integer NOT NULL",
        "ALTER TABLE news_thing ADD CONSTRAINT some CHECK (old > '')",
        "CREATE INDEX by_it ON news_thing (old)",
        "CREATE UNIQUE INDEX by_it ON news_thing (old)",
        "LOCK TABLE news_thing",
        "CREATE TRIGGER some BEFORE INSERT ON news_thing EXECUTE FUNCTION refuse()",
        "DELETE FROM news_thing",
        "UPDATE news_thing SET old = 'x' WHERE old IS NULL",
        "ALTER TABLE news_thing DROP COLUMN old; LOCK TABLE news_thing",
        "ALTER TABLE news_thing DROP COLUMN old, ADD COLUMN new integer NOT NULL",
        "DROP TABLE news_thing;DELETE/**/FROM/**/news_other",
        ["DROP TABLE news_thing"],
        [("DELETE FROM news_thing WHERE old = %s", ["x"])],
    ],
)
def test_sql_takes_a_reason(statement: Any) -> None:
    operation = migrations.RunSQL(statement)
    (found,) = noted(operation, contracts="1.4.0")
    assert "runs SQL" in found
    assert "harmless.py" in found
    assert noted(operation, harmless=LISTED) == []


@pytest.mark.parametrize(
    "constraint", [TWICE, models.CheckConstraint(condition=LONG, name="long")], ids=["unique", "check"]
)
def test_constraint_takes_a_release_that_keeps_it_and_a_reason_for_reading_all_rows(
    constraint: models.BaseConstraint,
) -> None:
    operation = migrations.AddConstraint("thing", constraint)
    breaks, locks = noted(operation)
    assert "rows that break it" in breaks
    assert "reads all rows" in locks
    assert noted(operation, contracts="1.4.0", harmless=LISTED) == []


def test_constraint_of_a_new_field_reads_all_rows_but_none_breaks_it() -> None:
    added = migrations.AddField("thing", "new", NUMBER)
    (found,) = noted(added, migrations.AddConstraint("thing", POSITIVE))
    assert "reads all rows" in found
    both = models.CheckConstraint(condition=models.Q(new__gt=models.F("old")), name="both")
    assert "rows that break it" in noted(added, migrations.AddConstraint("thing", both))[0]


@pytest.mark.parametrize(
    "operations",
    [
        [migrations.AlterModelOptions("thing", {"ordering": ["old"]})],
        [migrations.AlterModelTableComment("thing", "Things.")],
        [migrations.RenameIndex("thing", "by_it", "by_old")],
        [migrations.RunPython(migrations.RunPython.noop)],
        [migrations.RunSQL(migrations.RunSQL.noop)],
        [migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("thing", "old")])],
        [
            migrations.CreateModel("another", [KEY]),
            migrations.AddField("another", "new", models.CharField(max_length=9)),
            migrations.AddIndex("another", models.Index(fields=["new"], name="by_new")),
            migrations.AddConstraint("another", POSITIVE),
            migrations.AlterField("another", "new", models.PositiveIntegerField(unique=True)),
            migrations.RenameField("another", "new", "newer"),
        ],
        [in_database(migrations.CreateModel("another", [KEY]), migrations.DeleteModel("another"))],
    ],
)
def test_what_it_does_not_notice_is_let_through(operations: Sequence[Operation]) -> None:
    assert noted(*operations) == []


def test_table_is_new_only_once_it_has_been_made() -> None:
    (found,) = noted(migrations.DeleteModel("thing"), migrations.CreateModel("thing", [KEY]))
    assert "still uses it" in found


def test_table_that_others_make_is_not_new() -> None:
    made = migrations.CreateModel("another", [KEY], {"managed": False})
    (found,) = noted(made, migrations.DeleteModel("another"))
    assert "still uses it" in found


def test_what_the_models_alone_forget_stays_in_the_database() -> None:
    forgotten = migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("thing", "old")])
    (found,) = noted(forgotten, migrations.RunSQL("ALTER TABLE news_thing DROP COLUMN old"))
    assert "takes something away" in found


@pytest.mark.parametrize("contracts", ["1.4.0", "1.3.9"])
@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("thing", "old"),
        migrations.DeleteModel("thing"),
        migrations.RemoveIndex("thing", "by_old"),
        migrations.RemoveConstraint("thing", "one_old"),
        migrations.RunSQL("ALTER TABLE news_thing DROP COLUMN old"),
        migrations.RunSQL('drop table if exists "news_thing";'),
    ],
)
def test_what_a_release_does_without_is_taken_away_by_who_names_it(
    operation: Operation, contracts: str
) -> None:
    assert noted(operation, contracts=contracts) == []


@pytest.mark.parametrize(
    ("contracts", "why"),
    [
        ("1.5.0", "1.4.0 is the last release"),
        ("1.10.0", "is the last release"),
        ("next", "such as"),
        (1, "such as"),
    ],
)
def test_only_a_release_can_be_named(contracts: object, why: str) -> None:
    (found,) = noted(migrations.RemoveField("thing", "old"), contracts=contracts)
    assert why in found


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RenameField("thing", "old", "new"),
        migrations.AlterModelTable("thing", "matter"),
        migrations.AddIndex("thing", INDEX),
        migrations.AlterUniqueTogether("thing", {("id", "old")}),
    ],
)
def test_neither_a_release_nor_a_reason_excuses_what_can_be_done_otherwise(operation: Operation) -> None:
    assert len(noted(operation, contracts="1.4.0", harmless=LISTED)) == 1


def test_reason_is_for_one_migration() -> None:
    assert noted(migrations.RunPython(code), harmless=["news.0001_next"]) != []
    assert noted(migrations.AlterField("thing", "old", SHORT), harmless=()) == []
