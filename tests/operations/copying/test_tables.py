from __future__ import annotations

from collections.abc import Callable

import pytest
from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from django.db.models import ForeignKey

from operations.copying.opening import open_url
from operations.copying.schemas import filled_tables
from operations.copying.tables import column_of, last_migrations, schema_after

pytestmark = pytest.mark.served


def all_migrations() -> set[tuple[str, str]]:
    return set(MigrationLoader(None).graph.nodes)


def test_every_field_of_every_model_can_be_carried_and_the_migrations_make_their_tables() -> None:
    models = apps.get_models(include_auto_created=True)
    assert all(column_of(field).kind for model in models for field in model._meta.concrete_fields)
    ours = {model._meta.db_table for model in models if model._meta.managed}
    assert {table.name for table in schema_after(all_migrations()).tables} == ours


def test_a_table_comes_after_those_that_it_refers_to() -> None:
    order = [table.name for table in schema_after(all_migrations()).tables]
    for model in apps.get_models(include_auto_created=True):
        for field in model._meta.concrete_fields:
            if isinstance(field, ForeignKey):
                before = order.index(field.related_model._meta.db_table)
                assert before < order.index(model._meta.db_table), field


def test_an_earlier_state_has_the_tables_of_its_time() -> None:
    earlier = {(app, name) for app, name in all_migrations() if app != "status" or name < "0002"}
    names = {table.name for table in schema_after(earlier).tables}
    assert "status_processreport" not in names
    assert ("status", "0001_status") in last_migrations(earlier)


def test_what_migrating_puts_there_does_not_count_as_filled(
    new_database: Callable[[str], str], filled: Callable[[str], str]
) -> None:
    fresh, full = open_url(new_database("sqlite")), open_url(filled("sqlite"))
    assert filled_tables(fresh) == []
    assert "accounts_user" in filled_tables(full)
    fresh.close()
    full.close()
