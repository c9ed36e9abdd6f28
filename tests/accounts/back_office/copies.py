"""Very many rows, quickly: the database copies one, with what must differ made from a number."""

from __future__ import annotations

from django.db import connection
from django.db.models import Model

SQLITE = {
    "hex": "printf('%0{width}x', n)",
    "uuid": "printf('%032x', n)",
    "minutes_ago": "datetime({column}, '-' || n || ' minutes')",
}
POSTGRESQL = {
    "hex": "lpad(to_hex(n), {width}, '0')",
    "uuid": "lpad(to_hex(n), 32, '0')::uuid",
    "minutes_ago": "{column} - n * interval '1 minute'",
}


def sql(kind: str, **values: object) -> str:
    """An expression that differs from row to row, for the database at hand."""
    known = SQLITE if connection.vendor == "sqlite" else POSTGRESQL
    return known[kind].format(**values)


def copy(row: Model, times: int, **different: str) -> None:
    """Insert copies of a row; `different` gives the SQL for columns, in which `n` counts from 1."""
    meta = row._meta
    fields = [field for field in meta.concrete_fields if field.column in different or not field.primary_key]
    columns = [str(field.column) for field in fields]
    chosen = [different.get(column, f'"{column}"') for column in columns]
    names = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{meta.db_table}" ({names})'  # noqa: S608 - names of columns, and what a test wrote
            " WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %s)"
            f' SELECT {", ".join(chosen)} FROM "{meta.db_table}", numbers WHERE "{meta.pk.column}" = %s',
            [times, meta.pk.get_db_prep_value(row.pk, connection)],
        )
