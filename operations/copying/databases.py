"""PostgreSQL and SQLite as stores of rows in text, and how either is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.db.utils import ConnectionHandler

from .stores import (
    AFTER_POSTGRESQL,
    ESCAPES,
    NONE,
    SQLITE_DIGITS,
    Column,
    Key,
    Refused,
    Store,
    StoredTable,
    addresses,
    digits_of,
    escaped,
    fields_of,
    names_of,
    plain_decimal,
    plain_json,
    plain_moment,
    plain_real,
    quoted,
    unescaped,
)

WRITTEN_AT_ONCE = 1 << 18
# Values are written the same whatever the server's own settings are, and a table may be read for longer than
# the service may think.
SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
}
# With the table and the column that each numbers; the number is none before the first was given.
SEQUENCES = """
    SELECT t.relname, quote_ident(a.attname), q.oid::regclass, pg_sequence_last_value(q.oid)
    FROM pg_class q
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = q.oid AND d.deptype IN ('a', 'i')
    JOIN pg_class t ON t.oid = d.refobjid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
    WHERE q.relkind = 'S' AND q.relnamespace = current_schema()::regnamespace
"""


def place_of(server: psycopg.ConnectionInfo) -> str:
    """The one that answered, of several."""
    return f"{server.host}:{server.port}, database {server.dbname}"


class PostgresqlStore:
    vendor = "postgresql"
    a_minute_ago = "now() - interval '60 seconds'"

    def __init__(self, wishes: dict[str, Any]) -> None:
        """`wishes` go to libpq."""
        self._connection = psycopg.connect(**wishes, autocommit=True)
        self.place = f"PostgreSQL at {place_of(self._connection.info)}"

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.tell(begin)
        try:
            for name, value in SETTINGS.items():
                # For this transaction: a pooler gives the connection to others after it.
                self.tell(f"SET LOCAL {name} = '{value}'")
            yield
        except BaseException:
            # A table that was read half keeps the connection for itself, and a statement would wait for ever.
            self._connection.close()
            raise
        self.tell("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            guarded = [
                str(name)
                for (name,) in self.ask(
                    "SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
                    " WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace"
                )
            ]
            for name in guarded:
                self.tell(f"ALTER TABLE {quoted(name)} DISABLE TRIGGER USER")
            yield
            # What refers to a row that is not there is found here: while that waits, no table is altered.
            self.tell("SET CONSTRAINTS ALL IMMEDIATE")
            for name in guarded:
                self.tell(f"ALTER TABLE {quoted(name)} ENABLE TRIGGER USER")

    def names(self) -> set[str]:
        found = self.ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {str(name) for (name,) in found}

    def ask(self, question: str) -> list[tuple[object, ...]]:
        return self._connection.execute(question.encode()).fetchall()

    def tell(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def count(self, table: StoredTable) -> int:
        return int(str(self.ask(f"SELECT count(*) FROM {quoted(table.name)}")[0][0]))  # noqa: S608 - names of our own

    def read(self, table: StoredTable, after: Key = None, limit: int | None = None) -> Iterator[bytes]:
        shown = ", ".join(map(postgresql_text, table.columns))
        # Texts in the order of their bytes, as SQLite has them.
        key = quoted(table.key) + (' COLLATE "C"' if table.key_kind == "text" else "")
        where = f" WHERE {key} > {literal(after)}" if after is not None else ""
        most = f" LIMIT {limit:d}" if limit is not None else ""
        query = f"SELECT {shown} FROM {quoted(table.name)}{where} ORDER BY {key}{most}"  # noqa: S608 - names of our own
        made_plain = [
            (at, AFTER_POSTGRESQL[column.kind])
            for at, column in enumerate(table.columns)
            if column.kind in AFTER_POSTGRESQL
        ]
        with self._connection.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT".encode()) as rows:
            for row in rows:
                line = bytes(row)
                if made_plain:
                    fields = line[:-1].decode().split("\t")
                    for at, plain in made_plain:
                        if fields[at] != NONE:
                            fields[at] = escaped(plain(unescaped(fields[at])))
                    line = ("\t".join(fields) + "\n").encode()
                yield line

    def months(self, table: StoredTable, column: str, where: str) -> list[str]:
        month = f"to_char({quoted(column)} AT TIME ZONE 'UTC', 'YYYY-MM')"
        found = self.ask(f"SELECT DISTINCT {month} FROM {quoted(table.name)} WHERE {where} ORDER BY 1")  # noqa: S608 - names of our own
        return [str(name) for (name,) in found]

    def write(self, table: StoredTable, lines: Iterable[bytes]) -> None:
        statement = f"COPY {quoted(table.name)} ({names_of(table)}) FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(statement) as rows:
            waiting = bytearray()
            for line in lines:
                waiting += line
                if len(waiting) >= WRITTEN_AT_ONCE:
                    rows.write(bytes(waiting))
                    waiting.clear()
            rows.write(bytes(waiting))

    def empty(self, tables: Iterable[StoredTable]) -> None:
        self.tell(f"TRUNCATE {', '.join(quoted(table.name) for table in tables)}")

    def numbers(self) -> dict[str, int]:
        return {str(table): int(str(number or 0)) for table, _, _, number in self.ask(SEQUENCES)}

    def number_after(self, given: Mapping[str, int]) -> None:
        for table, key, sequence, number in self.ask(SEQUENCES):
            before = max(given.get(str(table), 0), int(str(number or 0)))
            last = f"SELECT greatest(max({key}), {before}) AS last FROM {quoted(str(table))}"  # noqa: S608 - names of our own
            self.ask(f"SELECT setval('{sequence}', greatest(last, 1), last > 0) FROM ({last}) AS of_rows")  # noqa: S608 - names of our own

    def close(self) -> None:
        self._connection.close()


def postgresql_text(column: Column) -> str:
    name = quoted(column.name)
    match column.kind:
        case "moment":
            return f"to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
        case "uuid":
            return f"replace({name}::text, '-', '')"
        case "address":
            return f"host({name})"
        case _:
            return name


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Rows of SQLite as text. The database itself makes most of the text, which is several times as fast.
AT_ONCE = 2_000
NUMBERS = "sqlite_sequence"


class SqliteStore:
    vendor = "sqlite"
    a_minute_ago = "datetime('now', '-60 seconds')"

    def __init__(self, database: DatabaseWrapper, *, create: bool = False) -> None:
        path = Path(str(database.settings_dict["NAME"]))
        self.place = f"SQLite at {path}"
        try:
            if create and not path.parent.is_dir():
                raise Refused(
                    f"{path} cannot be made: its folder is not there. Make that first, or fix the address."
                )
            if create:
                path.touch(mode=0o600)
            elif not path.exists():
                raise Refused(f"{path} is not there.")
            # Constraints ask for functions that Django gives to each connection.
            self._connection = database.get_new_connection(database.get_connection_params())
        except (OSError, sqlite3.OperationalError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Refused(f"{path} cannot be opened: {reason}.") from None
        self._connection.isolation_level = None
        self._fault: BaseException | None = None
        for name, takes, function in (
            ("plain_json", 1, lambda text: None if text is None else escaped(plain_json(text))),
            ("plain_real", 1, lambda value: None if value is None else plain_real(value)),
            ("plain_moment", 1, plain_moment),
            ("plain_decimal", 2, plain_decimal),
        ):
            self._connection.create_function(name, takes, self._keeping_faults(function), deterministic=True)

    def _keeping_faults(self, function: Callable[..., str | None]) -> Callable[..., str | None]:
        """SQLite says of any exception, Ctrl-C among them, only that there was one."""

        def call(*values: Any) -> str | None:
            try:
                return function(*values)
            except BaseException as fault:
                self._fault = fault
                raise

        return call

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Readers of a write-ahead log hold nobody up and see one state."""
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
                self.tell(f"DROP TRIGGER {quoted(str(name))}")
            yield
            for _, statement in triggers:
                self.tell(str(statement))
            self.tell("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self.tell("ROLLBACK")
            raise

    def names(self) -> set[str]:
        return {str(name) for (name,) in self.ask("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def ask(self, question: str) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = self._connection.execute(question).fetchall()
        return found

    def tell(self, statement: str) -> None:
        self._connection.execute(statement)

    def count(self, table: StoredTable) -> int:
        return int(str(self.ask(f"SELECT count(*) FROM {quoted(table.name)}")[0][0]))  # noqa: S608 - names of our own

    def read(self, table: StoredTable, after: Key = None, limit: int | None = None) -> Iterator[bytes]:
        shown = " || char(9) || ".join(f"coalesce({sqlite_text(column)}, '\\N')" for column in table.columns)
        key, value = quoted(table.key), "CAST(? AS INTEGER)" if table.key_kind == "whole" else "?"
        where = f" WHERE {key} > {value}" if after is not None else ""
        most = f" LIMIT {limit:d}" if limit is not None else ""
        question = f"SELECT {shown} FROM {quoted(table.name)}{where} ORDER BY {key}{most}"  # noqa: S608 - names of our own
        try:
            for (line,) in self._connection.execute(question, () if after is None else (after,)):
                if "\0" in line:
                    raise Refused(
                        f"{table.name}: a text has the character NUL, which PostgreSQL does not take."
                    )
                yield f"{line}\n".encode()
        except sqlite3.OperationalError:
            if self._fault is None:
                raise
            if isinstance(self._fault, Exception):
                raise Refused(f"{table.name} has a value that cannot be read: {self._fault}.") from None
            raise self._fault from None

    def months(self, table: StoredTable, column: str, where: str) -> list[str]:
        month = f"substr({quoted(column)}, 1, 7)"
        found = self.ask(f"SELECT DISTINCT {month} FROM {quoted(table.name)} WHERE {where} ORDER BY 1")  # noqa: S608 - names of our own
        return [str(name) for (name,) in found]

    def write(self, table: StoredTable, lines: Iterable[bytes]) -> None:
        values = ", ".join(from_text(column, f"?{at}") for at, column in enumerate(table.columns, 1))
        statement = f"INSERT INTO {quoted(table.name)} ({names_of(table)}) VALUES ({values})"  # noqa: S608 - names of our own
        decimals = [at for at, column in enumerate(table.columns) if column.kind == "decimal"]
        rows = (fields_of(line[:-1].decode()) for line in lines)
        while some := list(islice(rows, AT_ONCE)):
            for row in some:
                for at in decimals:
                    # Shorter ones cannot have more digits, with their sign and point.
                    if (
                        (text := row[at]) is not None
                        and len(text) > SQLITE_DIGITS
                        and digits_of(text) > SQLITE_DIGITS
                    ):
                        raise Refused(
                            f"{table.name}.{table.columns[at].name} of row {row[0]} is {text}: SQLite keeps"
                            f" {SQLITE_DIGITS} digits. Stay with PostgreSQL, or round it there first."
                        )
            self._connection.executemany(statement, some)

    def empty(self, tables: Iterable[StoredTable]) -> None:
        for table in reversed(list(tables)):
            self.tell(f"DELETE FROM {quoted(table.name)}")  # noqa: S608 - names of our own

    def numbers(self) -> dict[str, int]:
        # SQLite makes it with the first table that is numbered.
        found = self.ask(f"SELECT name, seq FROM {NUMBERS}") if NUMBERS in self.names() else []  # noqa: S608 - a name of our own
        return {str(name): int(str(number)) for name, number in found}

    def number_after(self, given: Mapping[str, int]) -> None:
        """AUTOINCREMENT itself goes on after the rows that were copied."""
        before, names = self.numbers(), self.names()
        for table in sorted(given.keys() & names):
            if table not in before:
                self.tell(f"INSERT INTO {NUMBERS} VALUES ('{table}', {given[table]:d})")  # noqa: S608 - names of our own
            elif before[table] < given[table]:
                self.tell(f"UPDATE {NUMBERS} SET seq = {given[table]:d} WHERE name = '{table}'")  # noqa: S608 - names of our own

    def close(self) -> None:
        self._connection.close()


def sqlite_text(column: Column) -> str:
    name = quoted(column.name)
    match column.kind:
        case "whole":
            return f"CAST({name} AS TEXT)"
        case "boolean":
            return f"CASE {name} WHEN 1 THEN 't' WHEN 0 THEN 'f' END"
        case "decimal":
            # Beyond it the digits of the binary fraction would show.
            is_short = f"abs({name}) < 1e{SQLITE_DIGITS - column.places}"
            short = f"printf('%.{column.places}f', {name} + 0.0)"
            return f"CASE WHEN {is_short} THEN {short} ELSE plain_decimal({name}, {column.places}) END"
        case "moment":
            return (
                f"CASE length({name}) WHEN 19 THEN {name} || '.000000' WHEN 26 THEN {name}"
                f" ELSE plain_moment({name}) END"
            )
        case "real" | "json":
            return f"plain_{column.kind}({name})"
        case "text":
            for letter, escape in ESCAPES.items():
                name = f"replace({name}, char({ord(letter)}), '{escape}')"
            return name
        case _:
            return name


def from_text(column: Column, value: str) -> str:
    match column.kind:
        case "boolean":
            return f"CASE {value} WHEN 't' THEN 1 WHEN 'f' THEN 0 END"
        case "moment":
            # As Django writes it: moments are compared as texts.
            return f"CASE substr({value}, 20) WHEN '.000000' THEN substr({value}, 1, 19) ELSE {value} END"
        case _:
            return value


# Opens databases for copying, past the pool and the settings of those who serve.
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
