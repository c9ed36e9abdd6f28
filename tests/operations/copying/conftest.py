from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from tests.databases import prepared
from tests.market.postgresql import in_place
from tests.programs import services

from . import world


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """Its database `postgres` is migrated, to be copied: nobody may be connected to it."""
    with TemporaryDirectory(prefix="tickwire-postgres-") as directory:
        data = Path(directory) / "postgres"
        prepared.copy_postgres(data)
        with services.postgres_of(data, Signals.SIGQUIT) as url:
            yield url.rpartition("/")[0]


@pytest.fixture
def new_database(db: None, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """The address of a migrated, otherwise empty database of a kind."""
    made = 0

    def make(kind: str, *, is_migrated: bool = True) -> str:
        nonlocal made
        made += 1
        if kind == "sqlite":
            path = tmp_path / f"{made}.sqlite3"
            if is_migrated:
                prepared.copy_sqlite(path)
            return f"sqlite:///{path}"
        server, name = request.getfixturevalue("postgresql"), f"{tmp_path.name}_{made}".lower()
        template = "postgres" if is_migrated else "template0"
        with psycopg.connect(f"{server}/template1", autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name}")
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return f"{server}/{name}"

    return make


@pytest.fixture
def filled(new_database: Callable[..., str]) -> Callable[[str], str]:
    """With at least a row of whatever is hard to carry."""

    def fill(kind: str) -> str:
        url = new_database(kind)
        with in_place(url):
            world.fill()
        return url

    return fill


@pytest.fixture
def backup(filled: Callable[[str], str], tmp_path: Path) -> Callable[[str], Path]:
    def take(kind: str) -> Path:
        path = tmp_path / f"{kind}.zip"
        with in_place(filled(kind)):
            run("backup", path)
        return path

    return take


KINDS: Any = ("sqlite", "postgresql")


def run(name: str, *words: object, **options: Any) -> str:
    """What a command says."""
    out = StringIO()
    call_command(name, *map(str, words), stdout=out, **options)
    return out.getvalue()
