"""What PostgreSQL makes of a field, and which changes of that leave the rows as they are."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.models import Field

# It is asked for types only and never connects.
POSTGRESQL = DatabaseWrapper({})
TYPE = re.compile(r"(?P<kind>varchar|text|numeric)(?:\((?P<size>\d+)(?:, (?P<digits>\d+))?\))?")
AnyField: TypeAlias = "Field[Any, Any]"


def column(name: str, field: AnyField) -> str:
    return str(bound(name, field).column)


def column_type(name: str, field: AnyField) -> str:
    """Such as "numeric(20, 8)"; of a relation nothing, as that depends on the other model."""
    if field.is_relation:
        return "that of another table's key"
    parts = [bound(name, field).db_type(POSTGRESQL), field.db_type_suffix(POSTGRESQL)]
    return " ".join(part for part in parts if part)


def column_check(name: str, field: AnyField) -> str | None:
    """Such as '"age" >= 0', which Django adds to some types."""
    return None if field.is_relation else bound(name, field).db_check(POSTGRESQL)


def keeps_rows(was: str, now: str) -> bool:
    """Whether PostgreSQL changes the type without writing (or reading) all rows again."""
    old, new = TYPE.fullmatch(was), TYPE.fullmatch(now)
    if was == now:
        return True
    if not old or not new or ("numeric" in (old["kind"], new["kind"]) and old["kind"] != new["kind"]):
        return False
    if new["size"] is None:
        return True
    return old["digits"] == new["digits"] and old["size"] is not None and int(old["size"]) <= int(new["size"])


def bound(name: str, field: AnyField) -> AnyField:
    copy = field.clone()
    copy.set_attributes_from_name(name)
    return copy
