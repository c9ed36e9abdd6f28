"""Opens databases for copying, past the pool and the settings of those who serve."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.utils import ConnectionHandler

from .addresses import addresses
from .postgresql_store import PostgresqlStore
from .sqlite_store import SqliteStore
from .stores import Refused, Store


@contextmanager
def faults_as_sentences() -> Iterator[None]:
    """What an operator can cause, for a command."""
    try:
        yield
    except Refused as refused:
        raise CommandError(str(refused)) from None
    except KeyboardInterrupt:
        raise CommandError("Stopped. To finish it, run the same command again.") from None
    except (DatabaseError, psycopg.Error, sqlite3.Error) as error:
        reason = str(error).strip().rstrip(".")
        raise CommandError(f"The database refused: {reason}. Fix that, and run the command again.") from error


def open_default(*, create: bool = False) -> Store:
    return open_as(connection, create=create)


def open_url(url: str) -> Store:
    return open_as(wrapper_of(url))


def wrapper_of(url: str) -> Any:
    return ConnectionHandler({"default": addresses.read(url)})["default"]


def is_same(url: str, other: str) -> bool:
    ours, theirs = wrapper_of(url).settings_dict, wrapper_of(other).settings_dict
    return all(ours[part] == theirs[part] for part in ("ENGINE", "NAME", "HOST", "PORT"))


def open_as(database: Any, *, create: bool = False) -> Store:
    """From Django's wrapper of it, which knows how it is connected to."""
    if database.vendor == "sqlite":
        return SqliteStore(database, create=create)
    ours = {"pool", "context", "cursor_factory"}
    wishes = {name: wish for name, wish in database.get_connection_params().items() if name not in ours}
    try:
        return PostgresqlStore(wishes)
    except psycopg.OperationalError as error:
        raise Refused(f"The database cannot be reached: {str(error).strip().splitlines()[0]}") from None
