"""Foreign keys to tables that an older version deletes from."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from django.db import models
from django.db.models import Field

from .found import Found


def wrong_with_reference(
    app: str, name: str, field: Field[Any, Any], new: Set[tuple[str, ...]]
) -> Iterator[Found]:
    """`name` is "model.field"; `new` has the models that no release knows."""
    model = name.split(".")[0].lower()
    if is_constrained(field) and any(each not in new for each in ends(app, model, field)):
        what = f"makes a foreign key {name}, which keeps an older version from deleting what it refers to"
        yield Found(f"{what}: use db_constraint=False", "harmless")


def is_constrained(field: Field[Any, Any]) -> bool:
    relation: Any = field.remote_field
    if isinstance(field, models.ManyToManyField):
        # A table that is given in `through` is made, and judged, as a model.
        return relation.through is None and bool(relation.db_constraint)
    return isinstance(field, models.ForeignKey) and bool(getattr(field, "db_constraint", True))


def ends(app: str, model: str, field: Field[Any, Any]) -> Iterator[tuple[str, str]]:
    """The models whose rows are referred to."""
    to: Any = getattr(field.remote_field, "model", "")
    other = (to if isinstance(to, str) else to._meta.label).lower()
    near, _, name = (model if other == "self" else other).rpartition(".")
    yield near or app, name
    if isinstance(field, models.ManyToManyField):
        yield app, model
