"""Row 60: an index is made while a transaction that writes is under way, and nobody waits for it. What
`migrate` sets for itself ends with it, because `serve` goes on with its connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.state import ProjectState

from core.database import ask
from core.schema import ConcurrentIndex
from tests.core.schema.tables import INDEX, INDEX_NAME, TABLE, apply, drop_table, make_table
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.services.processes import Installation

ADD = f"INSERT INTO {TABLE} (number) VALUES (1)"  # noqa: S608 - our own words
WAITS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE strpos(query, 'INDEX CONCURRENTLY') > 0 AND wait_event_type = 'Lock'"
)
NEIGHBOUR = (
    "CREATE SCHEMA neighbour",
    "CREATE TABLE neighbour.theirs (number int)",
    f"CREATE INDEX {INDEX_NAME} ON neighbour.theirs (number)",
)
VALID = f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{INDEX_NAME}'::regclass"  # noqa: S608


@pytest.fixture
def state(scaled: Installation) -> Iterator[ProjectState]:
    with scaled.orm():
        yield make_table()
        drop_table()


def wait_briefly_for_locks() -> None:
    """As `migrate` does."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '200ms'")


def asked(url: str, question: Any) -> Any:
    with psycopg.connect(url, autocommit=True) as other:
        row = other.execute(question).fetchone()
        return row and row[0]


@pytest.mark.row("60", "no writer waits for an index")
def test_an_index_is_built_without_blocking_writers_and_rebuilt_after_an_interruption(
    scaled: Installation, state: ProjectState
) -> None:
    url, told = scaled.database_url, list[str]()

    def make() -> None:
        with scaled.orm():
            wait_briefly_for_locks()
            with connection.cursor() as cursor:
                cursor.execute("SET search_path = public, neighbour")
            for _ in ("broken off before", "not recorded before"):
                apply(state, ConcurrentIndex("indexed", INDEX))
            told.append(ask("SHOW lock_timeout"))

    with psycopg.connect(url, autocommit=True) as other:
        for statement in NEIGHBOUR:
            other.execute(statement)
    with psycopg.connect(url) as writer:
        writer.execute(ADD)
        # The control: Django's own gives up, and leaves an index that answers nothing.
        wait_briefly_for_locks()
        with pytest.raises(OperationalError, match="lock timeout"):
            apply(state, AddIndexConcurrently("indexed", INDEX))
        assert asked(url, VALID) is False
        making = threading.Thread(target=make, daemon=True)
        making.start()
        wait_until(lambda: asked(url, WAITS))
        with psycopg.connect(url, options="-c lock_timeout=120s", autocommit=True) as other:
            other.execute(ADD)
        writer.commit()
    making.join(PATIENCE_S)
    assert asked(url, VALID) is True
    assert told == ["200ms"]
    assert asked(url, f"SELECT to_regclass('neighbour.{INDEX_NAME}') IS NOT NULL")


BOUNDS = ("lock_timeout", "idle_in_transaction_session_timeout")


def bounds() -> list[str]:
    with connection.cursor() as cursor:
        shown = []
        for name in BOUNDS:
            cursor.execute(f"SHOW {name}")
            shown.append(cursor.fetchone()[0])
        return shown


@pytest.mark.row("60", "no time limit outlives its migration")
def test_time_limits_of_a_migration_end_with_it(scaled: Installation) -> None:
    with scaled.orm():
        before = bounds()
        call_command("migrate", verbosity=0)
        assert bounds() == before
