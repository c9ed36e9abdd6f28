"""The errors of an unavailable database, and queries that are compiled once."""

import sqlite3
from typing import Any

from django.db import Error, InterfaceError, OperationalError, connection
from django.db.models import QuerySet
from django.db.utils import InternalError as DatabaseRefusal

from core.contract.errors import Overloaded
from core.program.commands import command

# The database is away or busy, or has ended a transaction that was idle for too long, as after a standstill
# of the machine. Any other error is a fault of ours and would come again.
TRANSIENT = (OperationalError, InterfaceError, DatabaseRefusal, Overloaded)

# Everything that keeps us from an answer, our own faults included.
UNANSWERED = (Error, Overloaded)


# What SQLite says of a file in which it does not find its way.
DAMAGE = ("malformed", "not a database", "unsupported file format")


def is_damaged(error: BaseException) -> bool:
    """Whether the file of SQLite is; it will not pass by waiting."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.DatabaseError) and any(words in str(cause) for words in DAMAGE)


def restore_in_its_place() -> str:
    """The way out of a damaged file. The secret in its folder stays, so keys and factors go on."""
    return (
        "Stop whatever uses it, move it away with its -wal and -shm, and restore a backup in its place:"
        f" `{command('restore FILE')}`"
    )


class CompiledQuery:
    """A query as the ORM wrote it. Its rows hold the driver's own values: compiling the query and
    converting Decimals, UUIDs and times costs several times what the database needs to answer."""

    def __init__(self, query: QuerySet[Any, Any]) -> None:
        self._sql, self._params = query.query.sql_with_params()

    def rows(self) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(self._sql, self._params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
