"""Row 61: the version before serves and writes on while the database is that of the next, which only added.
That migrations only add is shown by tests/tools/lint/migrations/test_migrations.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from psycopg import sql

from tests.reliability.clients.person import Person
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import streaming
from tools.lint.modules import ROOMS

SYMBOLS, ENTRY = ["VERSIONED"], "1.005"
PATHS = ("/api/symbols", "/api/signals", "/api/news", "/api/limits", "/api/session", "/api/market/VERSIONED")
ADD = "ALTER TABLE {table} ADD COLUMN of_the_next_version text NOT NULL DEFAULT 'new'"
WITHOUT_VALUE = "ALTER TABLE {table} ALTER COLUMN of_the_next_version DROP DEFAULT"
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    database = PrivatePostgres(tmp_path)
    with database.running():
        yield Installation(tmp_path, database.url)


def change(installation: Installation, statement: str, tables: list[str]) -> None:
    with psycopg.connect(installation.database_url, autocommit=True) as connection:
        for table in tables:
            connection.execute(sql.SQL(statement).format(table=sql.Identifier(table)))


def tables_of_ours() -> list[str]:
    models = [model for model in apps.get_models() if model._meta.app_label in ROOMS]
    return [model._meta.db_table for model in models if model._meta.managed and not model._meta.proxy]


@pytest.mark.row("61", "no 5xx")
def test_this_version_works_on_a_schema_with_more_columns(installation: Installation, tell: Tell) -> None:
    tables = tables_of_ours()
    with installation.orm():
        person = Person("versioned")
    with streaming(installation, 1, SYMBOLS) as service:
        server, key = service.servers[0], service.make_key()
        change(installation, ADD, tables)
        person.issue(server)
        person.publish(server, SYMBOLS[0], ENTRY)
        service.tick(SYMBOLS[0])
        statuses = {path: server.ask(path, key).status_code for path in PATHS}
    # And one that starts only now.
    with streaming(installation, 1, ["STARTED"]) as service:
        person.issue(service.servers[0])
        statuses |= {f"{path} again": service.servers[0].ask(path, key).status_code for path in PATHS}
    tell(f"{len(tables)} tables with one more column: {len(statuses)} reads, {set(statuses.values())}")
    tell(f"keys issued {len(person.keys)}, signals published {len(person.signals)}")
    assert set(statuses.values()) == {200}
    assert (len(person.keys), len(person.signals), person.refused) == (2, 1, [])


@pytest.mark.row("61", "a column without a value is noticed")
def test_control_a_column_without_a_value_is_noticed(installation: Installation) -> None:
    with installation.orm():
        person = Person("versioned")
    with streaming(installation, 1, SYMBOLS) as service:
        for statement in (ADD, WITHOUT_VALUE):
            change(installation, statement, ["accounts_apikey", "signals_feed_signal"])
        person.issue(service.servers[0])
        person.publish(service.servers[0], SYMBOLS[0], ENTRY)
    assert (person.keys, person.signals, len(person.refused)) == ([], [], 2)
