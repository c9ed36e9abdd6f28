"""Migrations make what the models say, and (row 61 of the gate) only ever add. While a new version starts,
the one before still serves, and writes rows that know nothing of what was added; and whoever goes back finds
what they left."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, migrations, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.fields import NOT_PROVIDED

from tests.house.modules import listed

ROOMS = ("accounts", "instruments", "market", "signals_feed", "news", "status")
TAKES_AWAY = (
    migrations.RemoveField,
    migrations.DeleteModel,
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
)
# From before there was a version to go back to. Nothing is added here: what an older version still needs
# goes one version later.
BEFORE_ALL = frozenset(
    (
        "instruments.0003_source_and_fallback",
        "market.0005_engine_state",
        "market.0008_source_seqs",
        "market.0009_simulated_and_real",
        "news.0003_sources_scores_outcomes",
    )
)


def has_value(field: models.Field[Any, Any]) -> bool:
    """Whether the database has something for a row that does not name it."""
    return field.null or field.db_default is not NOT_PROVIDED or isinstance(field, models.ManyToManyField)


def fault(operation: Operation, before: ProjectState, app: str) -> str:
    match operation:
        case migrations.AddField(model_name=model, name=name, field=field) if not has_value(field):
            return f"adds {model}.{name}, for which an older version has no value: give it a db_default"
        case migrations.AlterField(model_name=model, name=name, field=field):
            was = before.models[app, model.lower()].fields[name]
            if was.null and not has_value(field):
                return f"makes {model}.{name} NOT NULL, which an older version may leave out"
            if narrower(was, field):
                return f"makes {model}.{name} shorter than an older version writes it"
        case _ if isinstance(operation, TAKES_AWAY):
            return f"{operation.describe()}: an older version still asks for it"
    return ""


def narrower(was: models.Field[Any, Any], field: models.Field[Any, Any]) -> bool:
    lengths = [getattr(each, "max_length", None) for each in (was, field)]
    return lengths[1] is not None and (lengths[0] is None or lengths[1] < lengths[0])


def faults(loader: MigrationLoader) -> Iterator[tuple[str, str]]:
    """In the order in which they are applied."""
    state = ProjectState()
    plans = [loader.graph.forwards_plan(target) for target in loader.graph.leaf_nodes()]
    for key in dict.fromkeys(key for plan in plans for key in plan):
        yield from faults_of(loader.graph.nodes[key], state)


def faults_of(migration: migrations.Migration, state: ProjectState) -> Iterator[tuple[str, str]]:
    # No older version knows what is made here.
    new = {each.name_lower for each in migration.operations if isinstance(each, migrations.CreateModel)}
    for operation in migration.operations:
        is_old = getattr(operation, "model_name_lower", "") not in new
        if migration.app_label in ROOMS and is_old and (why := fault(operation, state, migration.app_label)):
            yield f"{migration.app_label}.{migration.name}", why
        operation.state_forwards(migration.app_label, state)


def test_migrations_only_add() -> None:
    found = list(faults(MigrationLoader(None)))

    new = [f"{name} {why}" for name, why in found if name not in BEFORE_ALL]
    assert not new, listed(new, "An older version still serves while these are applied:")
    # The control: those of before are seen.
    assert {name for name, _ in found} == BEFORE_ALL


TEXT = models.CharField(max_length=10)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (migrations.RemoveField("thing", "old"), "still asks for it"),
        (migrations.RenameField("thing", "old", "new"), "still asks for it"),
        (migrations.DeleteModel("thing"), "still asks for it"),
        (migrations.AddField("thing", "new", TEXT), "give it a db_default"),
        (migrations.AlterField("thing", "old", TEXT), "NOT NULL"),
        (migrations.AlterField("thing", "old", models.CharField(max_length=9, null=True)), "shorter"),  # noqa: DJ001
        (migrations.AddField("thing", "new", models.CharField(max_length=9, db_default="")), ""),
        (migrations.AddField("thing", "new", models.IntegerField(null=True)), ""),
        (migrations.AlterField("thing", "old", models.CharField(max_length=20, null=True)), ""),  # noqa: DJ001
    ],
)
def test_control_what_takes_away_is_seen(operation: Operation, why: str) -> None:
    state = ProjectState()
    old = models.CharField(max_length=10, null=True)  # noqa: DJ001
    made = migrations.CreateModel("thing", [("id", models.BigAutoField(primary_key=True)), ("old", old)])
    made.state_forwards("news", state)
    assert why in fault(operation, state, "news")
    assert bool(why) == bool(fault(operation, state, "news"))


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
