"""SQL and code in migrations, which nobody can judge who only reads their first words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.db import migrations

from .found import USES_IT, Found

TAKES_AWAY = re.compile(
    r"\s*(alter\s+table\s+(if\s+exists\s+)?[\w.\"]+\s+drop\s+column\s+(if\s+exists\s+)?\w+"
    r"|drop\s+table\s+(if\s+exists\s+)?[\w.\"]+)\s*;?\s*",
    re.IGNORECASE,
)
WHAT_IT_DOES = "which may change tables, lock them or rewrite rows: use the operations of Django"


def wrong_with_sql(operation: migrations.RunSQL) -> Iterator[Found]:
    if operation.sql == migrations.RunSQL.noop:
        return
    if isinstance(operation.sql, str) and TAKES_AWAY.fullmatch(operation.sql):
        yield Found(f"runs SQL that takes something away: {USES_IT}", "contracts")
    else:
        yield Found(f"runs SQL, {WHAT_IT_DOES}", "harmless")


def wrong_with_code(operation: migrations.RunPython) -> Iterator[Found]:
    if operation.code is not migrations.RunPython.noop:
        yield Found(
            f"runs code, {WHAT_IT_DOES}; if it fills in rows, in batches with atomic = False", "harmless"
        )
