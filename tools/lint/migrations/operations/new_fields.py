"""Fields that are added to a table which an older version writes."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import models
from django.db.models.fields import NOT_PROVIDED

from .columns import AnyField, column_check
from .found import BY_ITSELF, Found, reads_all_rows

FILL_IT = "add a field that may be NULL, and let later migrations and the code fill it"


def wrong_with_new_field(name: str, field: AnyField) -> Iterator[Found]:
    if isinstance(field, models.ManyToManyField):
        return
    if isinstance(field, models.GeneratedField):
        yield Found(f"adds {name}, which is computed for each row under a lock: {FILL_IT}")
        return
    if not field.null and field.db_default is NOT_PROVIDED:
        yield Found(f"adds {name}, for which an older version has no value: give it a db_default")
    default = field.db_default
    if hasattr(default, "resolve_expression") and not isinstance(default, models.Value):
        yield Found(f"adds {name} with a db_default that may be computed for each row: {FILL_IT}")
    if field.unique:
        yield reads_all_rows(f"adds {name}, which is unique")
    elif getattr(field, "db_index", False):
        yield Found(f"adds {name} with an index: nobody may write meanwhile; {BY_ITSELF}")
    if column_check(name.split(".")[1], field):
        yield reads_all_rows(f"adds {name} of a type with a check (IntegerField has none)")
