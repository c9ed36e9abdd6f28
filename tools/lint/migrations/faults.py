"""`python -m tools.lint.migrations`: what a migration may do while the release before still serves.

That release reads and writes the same tables before and after each process is replaced, and whoever goes back
to it does not migrate back. So a migration only adds. What nobody uses any more is taken away one release
later, by a migration that says so: `contracts = "0.2.0"` in its module names the release without it. What the
check cannot judge is named in harmless.py, with a reason."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Container, Iterator

import django
from django.db import migrations
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from config.installation import prepare
from tools.lint.modules import ROOMS

from .harmless import HARMLESS
from .last import Release, last_release, numbers
from .operations.found import Found
from .operations.rules import Schema, wrong_in
from .operations.transactions import wrong_with_transaction


def wrong_with_contract(contracts: object, release: Release) -> str:
    if not isinstance(contracts, str) or not re.fullmatch(r"\d+\.\d+\.\d+", contracts):
        return f'contracts names a release, such as "{release.version}", not {contracts!r}'
    if numbers(contracts) > numbers(release.version):
        return f"contracts what {contracts} does without, but {release.version} is the last release"
    return ""


def faults_of(
    migration: Migration, schema: Schema, release: Release, harmless: Container[str] = HARMLESS
) -> Iterator[str]:
    """It brings the schema on to what there is after the migration."""
    contracts = getattr(sys.modules[type(migration).__module__], "contracts", None)
    if contracts is not None and (why := wrong_with_contract(contracts, release)):
        yield why
    changing = [each for operation in migration.operations for each in of_database(operation)]
    found = list(wrong_with_transaction(migration.atomic, changing, schema))
    for operation in migration.operations:
        found += wrong_and_after(operation, schema)
    is_listed = f"{migration.app_label}.{migration.name}" in harmless
    excused = {"contracts": contracts is not None, "harmless": is_listed}
    yield from (each.why for each in found if not excused.get(each.excuse, False))


def of_database(operation: Operation) -> Iterator[Operation]:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        yield from (part for each in operation.database_operations for part in of_database(each))
    else:
        yield operation


def wrong_and_after(operation: Operation, schema: Schema) -> Iterator[Found]:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        of_database = schema._replace(state=schema.state.clone())
        for each in operation.database_operations:
            yield from wrong_and_after(each, of_database)
    else:
        yield from wrong_in(operation, schema)
        schema.new.update(made_by(operation, schema.app))
    operation.state_forwards(schema.app, schema.state)


def made_by(operation: Operation, app: str) -> Iterator[tuple[str, ...]]:
    match operation:
        case migrations.CreateModel() if operation.options.get("managed", True):
            yield app, operation.name_lower
        case migrations.AddField():
            yield app, operation.model_name_lower, operation.name


def faults(loader: MigrationLoader, release: Release, harmless: Container[str] = HARMLESS) -> Iterator[str]:
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
            for why in faults_of(migration, Schema(app, state, new), release, harmless):
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
        print(fault)
    if not found:
        print(f"Release {release} can serve beside this code and after it.")
    return bool(found)
