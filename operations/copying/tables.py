"""The tables of a database as its own migrations made them, whatever the code is by now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from django.db import models
from django.db.migrations.loader import MigrationLoader

MigrationName = tuple[str, str]
KINDS = {
    **dict.fromkeys(("CharField", "TextField", "SlugField", "FileField"), "text"),
    **dict.fromkeys(("AutoField", "BigAutoField", "SmallAutoField"), "whole"),
    **dict.fromkeys(("IntegerField", "BigIntegerField", "SmallIntegerField"), "whole"),
    "PositiveIntegerField": "whole",
    "PositiveBigIntegerField": "whole",
    "PositiveSmallIntegerField": "whole",
    "BooleanField": "boolean",
    "DateTimeField": "moment",
    "DateField": "date",
    "DecimalField": "decimal",
    "FloatField": "real",
    "UUIDField": "uuid",
    "JSONField": "json",
    "GenericIPAddressField": "address",
}


class UnknownKind(Exception):
    """A field of a kind that nobody has taught this to carry."""


class Column(msgspec.Struct, frozen=True):
    name: str
    kind: str
    places: int = 0
    """Of a decimal: digits after the point."""


class StoredTable(msgspec.Struct, frozen=True):
    name: str
    key: str
    columns: tuple[Column, ...]

    @property
    def key_kind(self) -> str:
        return next(column.kind for column in self.columns if column.name == self.key)


class Schema(NamedTuple):
    migrations: tuple[MigrationName, ...]
    tables: tuple[StoredTable, ...]
    """Each after those that it refers to."""


def unknown_migrations(applied: Iterable[MigrationName]) -> list[MigrationName]:
    """Those that a newer version made, or another program."""
    return sorted(set(applied) - MigrationLoader(None).graph.nodes.keys())


def last_migrations(applied: Iterable[MigrationName]) -> list[MigrationName]:
    """Of each app the last that was applied: from these the others follow."""
    graph, found = MigrationLoader(None).graph, set(applied)
    return sorted(
        name
        for name in found
        if not any(child.key in found and child.key[0] == name[0] for child in graph.node_map[name].children)
    )


def schema_after(applied: Iterable[MigrationName]) -> Schema:
    found = sorted(applied)
    state = MigrationLoader(None).project_state(last_migrations(found))
    return Schema(tuple(found), tuple(in_order(list(state.apps.get_models(include_auto_created=True)))))


def in_order(known: Sequence[type[models.Model]]) -> list[StoredTable]:
    waiting = {
        model._meta.db_table: model for model in known if model._meta.managed and not model._meta.proxy
    }
    ordered: list[StoredTable] = []
    done: set[str] = set()
    while waiting:
        ready = sorted(name for name, model in waiting.items() if needs(model) - done <= {name})
        if not ready:
            raise UnknownKind(f"These tables refer to each other in a circle: {', '.join(sorted(waiting))}.")
        for name in ready:
            ordered.append(table_of(waiting.pop(name)))
        done.update(ready)
    return ordered


def needs(model: type[models.Model]) -> set[str]:
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return {each._meta.db_table for each in related if isinstance(each, type)}


def table_of(model: type[models.Model]) -> StoredTable:
    meta = model._meta
    columns = tuple(column_of(field) for field in meta.concrete_fields)
    return StoredTable(meta.db_table, str(meta.pk.column), columns)


def column_of(field: models.Field[object, object]) -> Column:
    told: models.Field[object, object] = field
    while isinstance(told, models.ForeignKey):
        told = told.target_field
    kind = KINDS.get(told.get_internal_type())
    if kind is None:
        raise UnknownKind(f"{field.model._meta.db_table}.{field.column} is a {told.get_internal_type()}.")
    places = told.decimal_places if isinstance(told, models.DecimalField) else 0
    return Column(str(field.column), kind, places or 0)
