"""Feeds are asked the same few questions all day: the ORM writes the SQL once, and then it only runs."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import QuerySet


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
