"""What a migration does in one transaction, or without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import migrations
from django.db.migrations.operations.base import Operation

from core.schema import ConcurrentIndex

from .found import Found
from .rules import Schema, is_of_new_model

COMPUTES = (migrations.RunPython, migrations.RunSQL)


def wrong_with_transaction(
    is_atomic: bool, operations: Sequence[Operation], schema: Schema
) -> Iterator[Found]:
    """`operations` are those that change the database."""
    if is_atomic and any(isinstance(each, ConcurrentIndex) for each in operations):
        yield Found("makes a ConcurrentIndex in a transaction, which PostgreSQL refuses: say atomic = False")
    if not is_atomic and not all(isinstance(each, (ConcurrentIndex, *COMPUTES)) for each in operations):
        what = (
            "may stop half way, from where it cannot be applied again: atomic = False is for ConcurrentIndex"
        )
        yield Found(f"{what} and for rows; give the rest a migration of its own")
    if mixes(operations, schema):
        yield Found("changes tables and computes rows at once: give the rows a migration of their own")


def mixes(operations: Sequence[Operation], schema: Schema) -> bool:
    """Whether rows are computed in a transaction that has locked tables which an older version uses."""
    computes = any(isinstance(each, COMPUTES) for each in operations)
    made = {(schema.app, each.name_lower) for each in operations if isinstance(each, migrations.CreateModel)}
    schema = schema._replace(new=schema.new | made)
    return computes and not all(
        isinstance(each, COMPUTES) or is_of_new_model(each, schema) for each in operations
    )
