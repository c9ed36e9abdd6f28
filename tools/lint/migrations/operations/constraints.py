"""Constraints of tables that an older version writes."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from django.db import migrations, models

from .found import ON_CONFLICT, REFUSES, Found, reads_all_rows


def wrong_with_new_constraint(
    operation: migrations.AddConstraint, app: str, new: Set[tuple[str, ...]]
) -> Iterator[Found]:
    """No row of an older version breaks what is about new fields alone: the database fills those in."""
    what, fields = operation.describe(), fields_of(operation.constraint)
    if any((app, operation.model_name_lower, name) not in new for name in fields):
        yield Found(f"{what}: an older version may write rows that break it", "contracts")
    yield reads_all_rows(f"{what}: makes it in one step")


def wrong_with_removed_constraint(what: str, constraint: models.BaseConstraint) -> Iterator[Found]:
    if isinstance(constraint, models.CheckConstraint):
        yield Found(f"{what}: {REFUSES}", "harmless")
    else:
        yield Found(f"{what}: {ON_CONFLICT}", "contracts")


def fields_of(constraint: models.BaseConstraint) -> set[str]:
    """What it is about; with an empty name for what cannot be read."""
    if isinstance(constraint, models.CheckConstraint):
        return set(names_in(constraint.condition))
    if isinstance(constraint, models.UniqueConstraint) and constraint.fields:
        return set(constraint.fields)
    return {""}


def names_in(condition: Any) -> Iterator[str]:
    for part in condition.children if isinstance(condition, models.Q) else [None]:
        match part:
            case (str(name), value):
                yield name.split("__")[0]
                if isinstance(value, models.F):
                    yield str(getattr(value, "name", "")).split("__")[0]
                elif hasattr(value, "resolve_expression"):
                    yield ""
            case models.Q():
                yield from names_in(part)
            case _:
                yield ""
