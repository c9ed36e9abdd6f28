"""Migrations make what the models say, and (row 61 of the gate) those after the last release let it serve
on: it writes rows that know nothing of what was added, and whoever goes back finds what they left."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import StringIO
from types import ModuleType

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import call_command
from django.db import connection, migrations, models
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.functions import Now

from core.schema import ConcurrentIndex
from tests.house.modules import listed

from .last import Release, last_release
from .migrations import faults, faults_of


def test_migrations_only_add() -> None:
    found = list(faults(MigrationLoader(None), last_release()))
    assert not found, listed(found, "The last release still serves while these are applied:")


def test_control_those_from_before_there_was_a_release_are_seen() -> None:
    earlier = Release("0.0.1", "", (("market", "0008_source_seqs"),))
    found = {fault.split(" ", 1)[0] for fault in faults(MigrationLoader(None), earlier)}
    assert "market.0009_simulated_and_real" in found


RELEASE = Release("1.4.0", "")
TEXT, SHORT = models.CharField(max_length=10), models.CharField(max_length=9, db_default="")
NEW = models.CharField(max_length=9, null=True)  # noqa: DJ001
INDEX = models.Index(fields=["old"], name="by_old")
LONG = models.Q(("old__gt", "x"), models.Q(("old__lt", models.F("old"))), _connector="OR")
UNIQUE = models.UniqueConstraint(fields=["old"], name="one_old")


def noted(*operations: Operation, contracts: object = None) -> list[str]:
    """What is wrong with a migration that follows the release."""
    state = ProjectState()
    old = models.CharField(max_length=10, null=True)  # noqa: DJ001
    made = migrations.CreateModel("thing", [("id", models.BigAutoField(primary_key=True)), ("old", old)])
    made.state_forwards("news", state)
    module = ModuleType("made_migration")
    if contracts is not None:
        module.contracts = contracts  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    kind = type("Migration", (Migration,), {"operations": operations, "__module__": module.__name__})
    return list(faults_of(kind("0002_next", "news"), state, set(), RELEASE))


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (migrations.RemoveField("thing", "old"), "still uses it"),
        (migrations.RenameField("thing", "old", "new"), "knows the old name"),
        (migrations.RenameModel("thing", "matter"), "knows the old name"),
        (migrations.AlterModelTable("thing", "matter"), "knows the old name"),
        (migrations.DeleteModel("thing"), "still uses it"),
        (migrations.AddField("thing", "new", TEXT), "give it a db_default"),
        (
            migrations.AddField("thing", "new", models.DateTimeField(db_default=Now())),
            "computed for each row",
        ),
        (migrations.AddField("thing", "new", models.IntegerField(null=True, db_index=True)), "with an index"),
        (migrations.AlterField("thing", "old", TEXT), "NOT NULL"),
        (migrations.AlterField("thing", "old", NEW), "shorter"),
        (migrations.AlterField("thing", "old", models.IntegerField(null=True)), "changes the type"),
        (migrations.AlterField("thing", "old", models.TextField(null=True, unique=True)), "makes an index"),  # noqa: DJ001
        (migrations.AddIndex("thing", INDEX), "nobody may write meanwhile"),
        (AddIndexConcurrently("thing", INDEX), "core.schema.ConcurrentIndex"),
        (migrations.AddConstraint("thing", UNIQUE), "rows that break it"),
        (migrations.AddConstraint("thing", models.CheckConstraint(condition=LONG, name="long")), "break it"),
        (migrations.RunSQL("ALTER TABLE news_thing DROP COLUMN old"), "takes something away"),
        (
            migrations.SeparateDatabaseAndState(database_operations=[migrations.RemoveField("thing", "old")]),
            "still uses it",
        ),
    ],
)
def test_what_the_last_release_cannot_live_with_is_refused(operation: Operation, why: str) -> None:
    (found,) = noted(operation)
    assert why in found


@pytest.mark.parametrize(
    "operations",
    [
        [migrations.AddField("thing", "new", SHORT)],
        [migrations.AddField("thing", "new", models.IntegerField(null=True))],
        [
            migrations.AddField("thing", "new", models.IntegerField(null=True)),
            migrations.AddConstraint(
                "thing", models.CheckConstraint(condition=models.Q(new__gt=0), name="positive")
            ),
        ],
        [migrations.AlterField("thing", "old", models.CharField(max_length=20, null=True))],  # noqa: DJ001
        [migrations.AlterField("thing", "old", models.TextField(null=True))],  # noqa: DJ001
        [ConcurrentIndex("thing", INDEX)],
        [migrations.RunPython(migrations.RunPython.noop)],
        [migrations.RunSQL("UPDATE news_thing SET old = 'x' WHERE old IS NULL")],
        [migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("thing", "old")])],
        [
            migrations.CreateModel("other", [("id", models.BigAutoField(primary_key=True))]),
            migrations.AddField("other", "new", TEXT),
            migrations.AddIndex("other", models.Index(fields=["new"], name="by_new")),
            migrations.RunPython(migrations.RunPython.noop),
        ],
    ],
)
def test_what_it_does_not_notice_is_let_through(operations: Sequence[Operation]) -> None:
    assert noted(*operations) == []


def test_constraint_on_a_new_field_and_an_old_one_is_refused() -> None:
    both = models.CheckConstraint(condition=models.Q(new__gt=models.F("old")), name="both")
    (found,) = noted(
        migrations.AddField("thing", "new", models.IntegerField(null=True)),
        migrations.AddConstraint("thing", both),
    )
    assert "rows that break it" in found


def test_rows_are_computed_in_a_migration_of_their_own() -> None:
    (found,) = noted(
        migrations.AddField("thing", "new", SHORT), migrations.RunPython(migrations.RunPython.noop)
    )
    assert "a migration of their own" in found


@pytest.mark.parametrize("contracts", ["1.4.0", "1.3.9"])
@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("thing", "old"),
        migrations.DeleteModel("thing"),
        migrations.AlterField("thing", "old", TEXT),
        migrations.AddConstraint("thing", UNIQUE),
        migrations.RunSQL("ALTER TABLE news_thing DROP COLUMN old"),
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
        migrations.AddField("thing", "new", TEXT),
        migrations.AddIndex("thing", INDEX),
    ],
)
def test_no_release_makes_up_for_what_can_be_done_otherwise(operation: Operation) -> None:
    assert len(noted(operation, contracts="1.4.0")) == 1


@pytest.mark.django_db
def test_models_and_migrations_agree() -> None:
    output = StringIO()
    try:
        call_command("makemigrations", check=True, dry_run=True, stdout=output)
    except SystemExit:
        pytest.fail(f"`manage.py makemigrations --name …` has something to write:\n{output.getvalue()}")


@pytest.mark.django_db
def test_every_migration_is_applied_and_has_one_successor_at_most() -> None:
    executor = MigrationExecutor(connection)

    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    assert executor.loader.detect_conflicts() == {}
