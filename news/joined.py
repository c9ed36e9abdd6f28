"""The texts of several rows as one, so that a list of items needs no query for each item's symbols."""

from __future__ import annotations

from typing import Any

from django.db.models import Aggregate, CharField


class Joined(Aggregate):
    """With commas between; in no order, which is made where they are read."""

    function = "group_concat"
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any, **options: Any) -> Any:
        return self.as_sql(
            compiler,
            connection,
            function="string_agg",
            template="%(function)s(%(expressions)s, ',')",
            **options,
        )
