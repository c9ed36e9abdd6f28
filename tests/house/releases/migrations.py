"""`python -m tests.house.releases.migrations`: what a migration may do while the release before still serves.

That release reads and writes the same tables before and after each process is replaced, and whoever goes back
to it does not migrate back. So a migration only adds. What nobody uses any more is taken away one release
later, by a migration that says so: `contracts = "0.2.0"` in its module names the release without it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import django
from django.db import migrations, models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field
from django.db.models.fields import NOT_PROVIDED

from config.installation import prepare
from core.schema import ConcurrentIndex

from .last import Release, last_release, numbers

ROOMS = ("accounts", "instruments", "market", "signals_feed", "news", "status")
TAKES_AWAY_IN_SQL = re.compile(r"\b(drop|rename|truncate|set\s+not\s+null|alter\s+column)\b", re.IGNORECASE)
USES_IT = "an older version still uses it: do without it now, and take it away one release later (contracts)"
BY_ITSELF = "give it a migration of its own with core.schema.ConcurrentIndex"
Found = tuple[str, bool]
"""What is wrong, and whether a contract step may do it all the same."""


RENAMES = (migrations.RenameField, migrations.RenameModel, migrations.AlterModelTable)
TAKES_AWAY = (migrations.RemoveField, migrations.DeleteModel)
DEMANDS = (migrations.AddConstraint, migrations.AlterUniqueTogether)
LOCKS = (migrations.AddIndex, migrations.AlterIndexTogether)


def wrong_in(operation: Operation, before: ProjectState, app: str) -> Iterator[Found]:
    model = getattr(operation, "model_name", "")
    match operation:
        case migrations.SeparateDatabaseAndState():
            for each in operation.database_operations:
                yield from wrong_in(each, before, app)
        case migrations.AddField(name=name, field=field):
            yield from wrong_with_new_field(f"{model}.{name}", field)
        case migrations.AlterField(name=name, field=field):
            was = before.models[app, model.lower()].fields[name]
            yield from wrong_with_changed_field(f"{model}.{name}", was, field)
        case migrations.RunSQL(sql=sql) if TAKES_AWAY_IN_SQL.search(str(sql)):
            yield f"runs SQL that takes something away or changes its type: {USES_IT}", True
        case _:
            yield from wrong_as_such(operation)


def wrong_as_such(operation: Operation) -> Iterator[Found]:
    what = operation.describe()
    if isinstance(operation, RENAMES):
        yield f"{what}: an older version knows the old name; add, copy, and contract", False
    elif isinstance(operation, TAKES_AWAY):
        yield f"{what}: {USES_IT}", True
    elif isinstance(operation, DEMANDS):
        yield f"{what}: an older version may write rows that break it", True
    elif isinstance(operation, LOCKS) and not isinstance(operation, ConcurrentIndex):
        yield f"{what}: nobody may write meanwhile; {BY_ITSELF}", False


def wrong_with_new_field(name: str, field: Field[Any, Any]) -> Iterator[Found]:
    if isinstance(field, models.ManyToManyField):
        return
    if not has_value(field):
        yield f"adds {name}, for which an older version has no value: give it a db_default", False
    default = field.db_default
    if hasattr(default, "resolve_expression") and not isinstance(default, models.Value):
        yield f"adds {name} with a db_default that is computed for each row while nobody may use them", False
    if is_indexed(field):
        yield f"adds {name} with an index: nobody may write meanwhile; {BY_ITSELF}", False


def wrong_with_changed_field(name: str, was: Field[Any, Any], field: Field[Any, Any]) -> Iterator[Found]:
    if was.null and not has_value(field):
        yield f"makes {name} NOT NULL, which an older version may leave out", True
    if is_narrower(was, field):
        yield f"makes {name} shorter than an older version writes it", True
    elif was.get_internal_type() != field.get_internal_type() and not is_wider_text(was, field):
        yield f"changes the type of {name}: all rows are written again while nobody may use them", False
    if is_indexed(field) and not is_indexed(was):
        yield f"makes an index of {name}: nobody may write meanwhile; {BY_ITSELF}", False


def has_value(field: Field[Any, Any]) -> bool:
    """Whether the database has something for a row that does not name it."""
    return field.null or field.db_default is not NOT_PROVIDED


def is_indexed(field: Field[Any, Any]) -> bool:
    return bool(getattr(field, "db_index", False) or field.unique)


def is_narrower(was: Field[Any, Any], field: Field[Any, Any]) -> bool:
    lengths = [getattr(each, "max_length", None) for each in (was, field)]
    return lengths[1] is not None and (lengths[0] is None or lengths[1] < lengths[0])


def is_wider_text(was: Field[Any, Any], field: Field[Any, Any]) -> bool:
    kinds = ("CharField", "SlugField", "URLField", "EmailField", "TextField")
    return was.get_internal_type() in kinds and field.get_internal_type() in kinds


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


def mixes(operations: Sequence[Operation], new: set[tuple[str, ...]], app: str) -> bool:
    """Whether rows are computed in a transaction that has locked tables which an older version uses."""
    computes = any(isinstance(each, migrations.RunPython) for each in operations)
    changes = any(
        not isinstance(each, migrations.RunPython | migrations.RunSQL | migrations.CreateModel)
        and (app, getattr(each, "model_name", getattr(each, "name", "")).lower()) not in new
        for each in operations
    )
    return computes and changes


def wrong_with_contract(contracts: object, release: Release) -> str:
    if not isinstance(contracts, str) or not re.fullmatch(r"\d+\.\d+\.\d+", contracts):
        return f'contracts names a release, such as "{release.version}", not {contracts!r}'
    if numbers(contracts) > numbers(release.version):
        return f"contracts what {contracts} does without, but {release.version} is the last release"
    return ""


def faults_of(
    migration: Migration, state: ProjectState, new: set[tuple[str, ...]], release: Release
) -> Iterator[str]:
    """`new` are the models and fields that no release knows; those of this migration are added."""
    app, contracts = migration.app_label, getattr(sys.modules[type(migration).__module__], "contracts", None)
    if contracts is not None and (why := wrong_with_contract(contracts, release)):
        yield why
    new |= {
        (app, each.name_lower) for each in migration.operations if isinstance(each, migrations.CreateModel)
    }
    if mixes(migration.operations, new, app):
        yield "changes tables and computes rows at once: give the rows a migration of their own"
    for operation in migration.operations:
        named = getattr(operation, "model_name", getattr(operation, "name", "")) or ""
        if (app, named.lower()) not in new and not is_about_new_fields(operation, new, app):
            for why, may_contract in wrong_in(operation, state, app):
                if contracts is None or not may_contract:
                    yield why
        if isinstance(operation, migrations.AddField):
            new.add((app, operation.model_name_lower, operation.name))
        operation.state_forwards(app, state)


def is_about_new_fields(operation: Operation, new: set[tuple[str, ...]], app: str) -> bool:
    """A constraint that no row of an older version can break, as those have what the database fills in."""
    if not isinstance(operation, migrations.AddConstraint):
        return False
    fields = fields_of(operation.constraint)
    return all((app, operation.model_name_lower, name) in new for name in fields)


def faults(loader: MigrationLoader, release: Release) -> Iterator[str]:
    """Of all migrations that are newer than the release, in the order in which they are applied."""
    graph = loader.graph
    released = {key for leaf in release.migrations for key in graph.forwards_plan(leaf)}
    plans = [graph.forwards_plan(leaf) for leaf in graph.leaf_nodes()]
    state, new = ProjectState(), set[tuple[str, ...]]()
    for app, name in dict.fromkeys(key for plan in plans for key in plan):
        migration = graph.nodes[app, name]
        if app not in ROOMS or (app, name) in released:
            migration.mutate_state(state, preserve=False)
        else:
            for why in faults_of(migration, state, new, release):
                yield f"{app}.{name} {why}"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    with tempfile.TemporaryDirectory() as var_dir:
        os.environ["VAR_DIR"] = var_dir
        prepare()
        django.setup()
        release = last_release()
        found = list(faults(MigrationLoader(None), release))
    for fault in found:
        print(fault)  # noqa: T201 - this is a command
    if not found:
        print(f"Release {release} can serve beside this code and after it.")  # noqa: T201
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
