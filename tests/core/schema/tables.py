"""A table of its own, and one operation of a migration done to it."""

from __future__ import annotations

from typing import Any

from django.db import connection, migrations, models
from django.db.migrations import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

TABLE, INDEX_NAME = "status_indexed", "indexed_by_number"
INDEX = models.Index(fields=["number"], name=INDEX_NAME)


def make_table() -> ProjectState:
    fields: list[tuple[str, models.Field[Any, Any]]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("number", models.IntegerField()),
    ]
    return apply(ProjectState(), migrations.CreateModel("Indexed", fields))


def drop_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {TABLE}")


def apply(state: ProjectState, operation: Operation) -> ProjectState:
    kind = type("Made", (Migration,), {"operations": [operation], "atomic": False})
    with connection.schema_editor(atomic=False) as editor:
        after: ProjectState = kind("0099_made", "status").apply(state.clone(), editor)
    return after
