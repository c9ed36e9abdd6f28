from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.databases import prepared
from tests.market.postgresql import in_place, own_server

from . import world


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    with own_server() as url:
        yield url


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
        if is_migrated:
            prepared.copy_database(server, name)
        else:
            with psycopg.connect(server, autocommit=True) as admin:
                admin.execute(f"DROP DATABASE IF EXISTS {name}")
                admin.execute(f"CREATE DATABASE {name}")
        return f"{server.rpartition('/')[0]}/{name}"

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


KINDS: Any = ("sqlite", "postgresql")
