"""What each operation of a migration does to an older version. One that is not listed here is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from core.schema import ConcurrentIndex

from .changed_fields import wrong_with_changed_field
from .columns import AnyField
from .constraints import wrong_with_new_constraint, wrong_with_removed_constraint
from .foreign_keys import is_constrained, wrong_with_reference
from .found import BY_ITSELF, USES_IT, Found
from .new_fields import wrong_with_new_field
from .statements import wrong_with_code, wrong_with_sql


class Schema(NamedTuple):
    """What there is when an operation begins; `new` are the models and fields that no release knows."""

    app: str
    state: ProjectState
    new: set[tuple[str, ...]]


def wrong_in(operation: Operation, schema: Schema) -> Iterator[Found]:
    new = schema.new
    if isinstance(operation, migrations.CreateModel):
        new = new | {(schema.app, operation.name_lower)}
    for name, field in new_references(operation, schema):
        yield from wrong_with_reference(schema.app, name, field, new)
    if not is_of_new_model(operation, schema):
        yield from RULES.get(type(operation), not_known)(operation, schema)


def is_of_new_model(operation: Operation, schema: Schema) -> bool:
    model = str(getattr(operation, "model_name", getattr(operation, "name", "")))
    return (schema.app, model.lower()) in schema.new


def new_references(operation: Operation, schema: Schema) -> Iterator[tuple[str, AnyField]]:
    match operation:
        case migrations.CreateModel() if operation.options.get("managed", True):
            yield from ((f"{operation.name}.{name}", field) for name, field in operation.fields)
        case migrations.AddField():
            yield f"{operation.model_name}.{operation.name}", operation.field
        case migrations.AlterField() if not is_constrained(field_before(operation, schema)):
            yield f"{operation.model_name}.{operation.name}", operation.field


def field_before(operation: migrations.AlterField, schema: Schema) -> AnyField:
    was: AnyField = schema.state.models[schema.app, operation.model_name_lower].fields[operation.name]
    return was


def nothing(operation: Operation, schema: Schema) -> Iterator[Found]:
    yield from ()


def not_known(operation: Operation, schema: Schema) -> Iterator[Found]:
    yield Found(f"{operation.describe()}: this check knows nothing of {type(operation).__name__}", "harmless")


def new_field(operation: migrations.AddField, schema: Schema) -> Iterator[Found]:
    yield from wrong_with_new_field(f"{operation.model_name}.{operation.name}", operation.field)


def changed_field(operation: migrations.AlterField, schema: Schema) -> Iterator[Found]:
    name = f"{operation.model_name}.{operation.name}"
    yield from wrong_with_changed_field(name, field_before(operation, schema), operation.field)


def new_constraint(operation: migrations.AddConstraint, schema: Schema) -> Iterator[Found]:
    yield from wrong_with_new_constraint(operation, schema.app, schema.new)


def removed_constraint(operation: migrations.RemoveConstraint, schema: Schema) -> Iterator[Found]:
    model = schema.state.models[schema.app, operation.model_name_lower]
    yield from wrong_with_removed_constraint(
        operation.describe(), model.get_constraint_by_name(operation.name)
    )


def renamed(operation: Operation, schema: Schema) -> Iterator[Found]:
    yield Found(f"{operation.describe()}: an older version knows the old name; add, copy, and contract")


def taken_away(operation: Operation, schema: Schema) -> Iterator[Found]:
    yield Found(f"{operation.describe()}: {USES_IT}", "contracts")


def index(operation: Operation, schema: Schema) -> Iterator[Found]:
    yield Found(f"{operation.describe()}: nobody may write meanwhile; {BY_ITSELF}")


def together(operation: Operation, schema: Schema) -> Iterator[Found]:
    yield Found(
        f"{operation.describe()}: name each in Meta.constraints or Meta.indexes, so that it can be judged"
    )


def statement(operation: migrations.RunSQL, schema: Schema) -> Iterator[Found]:
    yield from wrong_with_sql(operation)


def code(operation: migrations.RunPython, schema: Schema) -> Iterator[Found]:
    yield from wrong_with_code(operation)


# Of the exact class, as one that is derived may do anything.
RULES: dict[type[Operation], Callable[[Any, Schema], Iterator[Found]]] = {
    migrations.CreateModel: nothing,
    migrations.AlterModelOptions: nothing,
    migrations.AlterModelManagers: nothing,
    migrations.AlterModelTableComment: nothing,
    migrations.AlterConstraint: nothing,
    # Its lock is as short as that of a new column, and statements do not name indexes.
    migrations.RenameIndex: nothing,
    ConcurrentIndex: nothing,
    migrations.AddField: new_field,
    migrations.AlterField: changed_field,
    migrations.AddConstraint: new_constraint,
    migrations.RemoveConstraint: removed_constraint,
    migrations.RenameField: renamed,
    migrations.RenameModel: renamed,
    migrations.AlterModelTable: renamed,
    migrations.RemoveField: taken_away,
    migrations.DeleteModel: taken_away,
    migrations.RemoveIndex: taken_away,
    RemoveIndexConcurrently: taken_away,
    migrations.AddIndex: index,
    AddIndexConcurrently: index,
    migrations.AlterUniqueTogether: together,
    migrations.AlterIndexTogether: together,
    migrations.RunSQL: statement,
    migrations.RunPython: code,
}
