"""A PostgreSQL in the place of the default database, whatever that is: for what no other can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from django.core.management import call_command
from django.db import connection, connections
from django.db.utils import ConnectionHandler

from config.environment import read_database_url
from core.database import fetch
from market.store.databases import drop, market_tables
from tests.programs.services import postgres


@contextmanager
def own_server() -> Iterator[str]:
    with TemporaryDirectory(prefix="tickwire-postgres-") as directory, postgres(Path(directory)) as url:
        yield url


@contextmanager
def in_place(url: str) -> Iterator[None]:
    """For this thread."""
    own = ConnectionHandler({"default": read_database_url(url)})["default"]
    before, connections["default"] = connections["default"], own
    try:
        yield
    finally:
        connections["default"] = before
        own.close()


def migrate(migration: str = "") -> None:
    """The market to a migration, and what it builds upon; to the last unless told otherwise."""
    call_command("migrate", "instruments", verbosity=0)
    call_command("migrate", "market", *filter(None, [migration]), verbosity=0)


def clear() -> None:
    for month in market_tables().months():
        drop(month)
    empty()


def empty() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE instruments_tradingcalendar CASCADE")


def ask(question: str, *parameters: int | str | datetime) -> list[str]:
    """The first column of the answer."""
    return [str(row[0]) for row in fetch(question, parameters)]
