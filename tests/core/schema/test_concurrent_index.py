"""An index that is made beside writers; how it waits for them stands in tests/reliability/database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.state import ProjectState

from core.schema import ConcurrentIndex

from .tables import INDEX, INDEX_NAME, TABLE, apply, drop_table, make_table

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]


@pytest.fixture
def state() -> Iterator[ProjectState]:
    yield make_table()
    drop_table()


def has_index() -> bool:
    with connection.cursor() as cursor:
        return INDEX_NAME in connection.introspection.get_constraints(cursor, TABLE)


def test_it_is_made_and_taken_back_on_either_database(state: ProjectState) -> None:
    operation = ConcurrentIndex("indexed", INDEX)
    apply(state, operation)
    # Killed before its migration is recorded, it is done again.
    after = apply(state, operation)
    assert has_index()
    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("status", editor, after, state)
    assert not has_index()
