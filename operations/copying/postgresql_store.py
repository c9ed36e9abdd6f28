"""Rows of PostgreSQL as text, by COPY."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from .stores import Key, names_of, quoted
from .tables import Column, StoredTable
from .text import AFTER_POSTGRESQL, NONE, escaped, unescaped

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
        shown = ", ".join(map(as_text, table.columns))
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


def as_text(column: Column) -> str:
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
