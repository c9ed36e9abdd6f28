"""Rows of SQLite as text. The database itself makes most of the text, which is several times as fast."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3.base import DatabaseWrapper

from .stores import Key, Refused, names_of, quoted
from .tables import Column, StoredTable
from .text import (
    ESCAPES,
    SQLITE_DIGITS,
    digits_of,
    escaped,
    fields_of,
    plain_decimal,
    plain_json,
    plain_moment,
    plain_real,
)

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
        shown = " || char(9) || ".join(f"coalesce({as_text(column)}, '\\N')" for column in table.columns)
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


def as_text(column: Column) -> str:
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
