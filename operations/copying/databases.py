"""A database as lines of text, read as of one moment and written fast, on PostgreSQL and SQLite."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.utils import ConnectionHandler

from .tables import (
    NONE,
    SQLITE_DIGITS,
    StoredTable,
    digits_of,
    fields_of,
    form_of,
    names_of,
    quoted,
    together,
)

Key = str | None
"""Of the last row that was read or written, as text; None before the first."""
Rows = list[tuple[Any, ...]]
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class Store(ABC):
    vendor: str
    place: str
    """Which database it is, for people: without a password."""
    a_minute_ago: str
    month_of: str
    """Of a moment, such as 2026-11."""
    by_bytes: str
    """The order of texts that both databases have."""
    all_names: str
    """A question for the names of all its tables."""
    _connection: Any

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Reads within it see the database at one moment, despite later writes."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """One transaction, in which triggers are silent."""

    @abstractmethod
    def write(self, table: StoredTable, lines: Iterable[bytes]) -> None: ...

    @abstractmethod
    def empty(self, tables: Iterable[StoredTable]) -> None: ...

    @abstractmethod
    def numbers(self) -> dict[str, int]:
        """The last that each table gave to a row, whether the row is still there or not."""

    @abstractmethod
    def number_after(self, given: Mapping[str, int]) -> None:
        """Each table gives the next row a number after its rows, what it gave before, and `given`."""

    @abstractmethod
    def _rows(self, question: str) -> Iterable[tuple[Any, ...]]: ...

    def ask(self, question: str) -> Rows:
        return list(self._connection.execute(question).fetchall())

    def names(self) -> set[str]:
        return {name for (name,) in self.ask(self.all_names)}

    def tell(self, statement: str) -> None:
        self._connection.execute(statement)

    def read(self, table: StoredTable, after: Key = None, limit: int | None = None) -> Iterator[bytes]:
        """Lines in the order of the key."""
        key = quoted(table.key)
        if table.columns[table.key_at].kind == "text":
            key += f" COLLATE {self.by_bytes}"
        where = f" WHERE {key} > {literal(after)}" if after is not None else ""
        most = f" LIMIT {limit:d}" if limit is not None else ""
        question = f"SELECT {names_of(table)} FROM {quoted(table.name)}{where} ORDER BY {key}{most}"  # noqa: S608 - names of our own
        forms = list(map(form_of, table.columns))
        try:
            for row in self._rows(question):
                line = "\t".join(
                    [NONE if value is None else form(value) for form, value in zip(forms, row, strict=True)]
                )
                if "\0" in line:
                    raise CommandError(
                        f"{table.name}: a text has the character NUL, which PostgreSQL does not take."
                    )
                yield f"{line}\n".encode()
        except UNREADABLE as fault:
            raise CommandError(f"{table.name} has a value that cannot be read: {fault}.") from None

    def close(self) -> None:
        self._connection.close()


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Values are written the same whatever the server's own settings are, and a table may be read for longer than
# a transaction of the service may take.
SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
}
# With the table and the column that each numbers; the number is NULL before the first was given.
SEQUENCES = """
    SELECT t.relname, quote_ident(a.attname), q.oid::regclass, pg_sequence_last_value(q.oid)
    FROM pg_class q
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = q.oid AND d.deptype IN ('a', 'i')
    JOIN pg_class t ON t.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    WHERE q.relkind = 'S' AND q.relnamespace = current_schema()::regnamespace
"""
GUARDED = """
    SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
"""


def place_of(server: psycopg.ConnectionInfo) -> str:
    """The one that answered, of several."""
    return f"{server.host}:{server.port}, database {server.dbname}"


class PostgresqlStore(Store):
    vendor = "postgresql"
    a_minute_ago = "now() - interval '60 seconds'"
    month_of = "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM')"
    by_bytes = '"C"'
    all_names = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"

    def __init__(self, parameters: dict[str, Any]) -> None:
        """`parameters` go to libpq."""
        self._connection = psycopg.connect(**parameters, autocommit=True)
        self.place = f"PostgreSQL at {place_of(self._connection.info)}"

    def snapshot(self) -> AbstractContextManager[None]:
        return self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.tell(begin)
        try:
            for name, value in SETTINGS.items():
                # For this transaction: a pooler gives the connection to others after it.
                self.tell(f"SET LOCAL {name} = '{value}'")
            yield
        except BaseException:
            # While a table is half read, a statement on the connection would wait for ever.
            self._connection.close()
            raise
        self.tell("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            guarded = [quoted(name) for (name,) in self.ask(GUARDED)]
            for name in guarded:
                self.tell(f"ALTER TABLE {name} DISABLE TRIGGER USER")
            yield
            # A reference to a missing row is found here; as long as that waits, no table can be altered.
            self.tell("SET CONSTRAINTS ALL IMMEDIATE")
            for name in guarded:
                self.tell(f"ALTER TABLE {name} ENABLE TRIGGER USER")

    def _rows(self, question: str) -> Iterator[tuple[Any, ...]]:
        with self._connection.cursor() as cursor, cursor.copy(f"COPY ({question}) TO STDOUT") as copy:
            yield from copy.rows()

    def write(self, table: StoredTable, lines: Iterable[bytes]) -> None:
        statement = f"COPY {quoted(table.name)} ({names_of(table)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for _, some in together(lines):
                copy.write(some)

    def empty(self, tables: Iterable[StoredTable]) -> None:
        self.tell(f"TRUNCATE {', '.join(quoted(table.name) for table in tables)}")

    def numbers(self) -> dict[str, int]:
        return {table: number or 0 for table, _, _, number in self.ask(SEQUENCES)}

    def number_after(self, given: Mapping[str, int]) -> None:
        for table, key, sequence, number in self.ask(SEQUENCES):
            before = max(given.get(table, 0), number or 0)
            last = f"SELECT greatest(max({key}), {before}) AS last FROM {quoted(table)}"  # noqa: S608 - names of our own
            self.ask(f"SELECT setval('{sequence}', greatest(last, 1), last > 0) FROM ({last}) AS of_rows")  # noqa: S608 - names of our own


NUMBERS = "sqlite_sequence"
# How a text becomes what Django writes. SQLite compares moments as texts.
STORED: dict[str, Callable[[str], object]] = {
    "boolean": {"t": 1, "f": 0}.get,
    "moment": lambda text: text.removesuffix(".000000"),
}


class SqliteStore(Store):
    vendor = "sqlite"
    a_minute_ago = "datetime('now', '-60 seconds')"
    month_of = "substr({}, 1, 7)"
    by_bytes = "BINARY"
    all_names = "SELECT name FROM sqlite_master WHERE type = 'table'"

    def __init__(self, database: Any, *, create: bool = False) -> None:
        path = Path(str(database.settings_dict["NAME"]))
        self.place = f"SQLite at {path}"
        try:
            if create and not path.parent.is_dir():
                raise CommandError(
                    f"{path} cannot be made: its folder is not there. Make that first, or fix the address."
                )
            if create:
                path.touch(mode=0o600)
            elif not path.exists():
                raise CommandError(f"{path} is not there.")
            # Constraints call functions that Django gives to each connection. Values come as they are stored.
            parameters = database.get_connection_params() | {"detect_types": 0}
            self._connection = database.get_new_connection(parameters)
        except (OSError, sqlite3.OperationalError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandError(f"{path} cannot be opened: {reason}.") from None
        self._connection.isolation_level = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Readers of a write-ahead log block no writer and see one state."""
        self.tell("BEGIN")
        try:
            # The state is that of the first read.
            self.ask("SELECT count(*) FROM sqlite_master")
            yield
        finally:
            self.tell("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.tell("PRAGMA foreign_keys = ON")
        self.tell("BEGIN IMMEDIATE")
        try:
            triggers = self.ask("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            for name, _ in triggers:
                self.tell(f"DROP TRIGGER {quoted(name)}")
            yield
            for _, statement in triggers:
                self.tell(statement)
            self.tell("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self.tell("ROLLBACK")
            raise

    def _rows(self, question: str) -> Iterable[tuple[Any, ...]]:
        rows: Iterable[tuple[Any, ...]] = self._connection.execute(question)
        return rows

    def write(self, table: StoredTable, lines: Iterable[bytes]) -> None:
        values = ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {quoted(table.name)} ({names_of(table)}) VALUES ({values})"  # noqa: S608 - names of our own
        self._connection.executemany(statement, values_of(table, lines))

    def empty(self, tables: Iterable[StoredTable]) -> None:
        for table in reversed(list(tables)):
            self.tell(f"DELETE FROM {quoted(table.name)}")  # noqa: S608 - names of our own

    def numbers(self) -> dict[str, int]:
        # SQLite creates it with the first table that is numbered.
        return dict(self.ask(f"SELECT name, seq FROM {NUMBERS}")) if NUMBERS in self.names() else {}  # noqa: S608 - a name of our own

    def number_after(self, given: Mapping[str, int]) -> None:
        """AUTOINCREMENT itself continues after the rows that were copied."""
        before, names = self.numbers(), self.names()
        for table in sorted(given.keys() & names):
            if before.get(table, -1) < given[table]:
                self.tell(f"DELETE FROM {NUMBERS} WHERE name = '{table}'")  # noqa: S608 - names of our own
                self.tell(f"INSERT INTO {NUMBERS} VALUES ('{table}', {given[table]:d})")  # noqa: S608 - names of our own


def values_of(table: StoredTable, lines: Iterable[bytes]) -> Iterator[list[Any]]:
    """As SQLite takes them: all others it converts by the type of their column."""
    special = [(at, column) for at, column in enumerate(table.columns) if column.kind in STORED]
    decimals = [(at, column) for at, column in enumerate(table.columns) if column.kind == "decimal"]
    for line in lines:
        row: list[Any] = fields_of(line[:-1].decode())
        for at, column in special:
            if row[at] is not None:
                row[at] = STORED[column.kind](row[at])
        # Shorter texts cannot have more digits, with their sign and point.
        for at, column in decimals:
            text = row[at]
            if text is not None and len(text) > SQLITE_DIGITS and digits_of(text) > SQLITE_DIGITS:
                raise CommandError(
                    f"{table.name}.{column.name} of row {row[0]} is {text}: SQLite keeps"
                    f" {SQLITE_DIGITS} digits. Stay with PostgreSQL, or round it there first."
                )
        yield row


# Opens databases for copying, without the pool and the settings of the service.
@contextmanager
def faults_as_sentences() -> Iterator[None]:
    """Faults that an operator can cause, reported as sentences."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError("Stopped. To finish it, run the same command again.") from None
    except (DatabaseError, psycopg.Error, sqlite3.Error) as error:
        reason = str(error).strip().rstrip(".")
        raise CommandError(f"The database refused: {reason}. Fix that, and run the command again.") from error


class Addresses:
    """How the settings read a database's address, handed down."""

    read: Callable[[str], dict[str, Any]]


addresses = Addresses()


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
    """From Django's wrapper, which knows how to connect."""
    if database.vendor == "sqlite":
        return SqliteStore(database, create=create)
    djangos = {"pool", "context", "cursor_factory"}
    parameters = {
        name: value for name, value in database.get_connection_params().items() if name not in djangos
    }
    try:
        return PostgresqlStore(parameters)
    except psycopg.OperationalError as error:
        raise CommandError(f"The database cannot be reached: {str(error).strip().splitlines()[0]}") from None
