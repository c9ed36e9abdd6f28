"""Fields that are changed in a table which an older version reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models.fields import NOT_PROVIDED

from .columns import AnyField, column, column_check, column_type, keeps_rows
from .foreign_keys import is_constrained
from .found import BY_ITSELF, ON_CONFLICT, REFUSES, USES_IT, Found, reads_all_rows

PYTHON_ONLY = {
    *("auto_created", "auto_now", "auto_now_add", "default", "serialize"),
    *("allow_unicode", "decoder", "encoder", "protocol"),
    *("unique_for_date", "unique_for_month", "unique_for_year"),
    # Kept by the database, which does nothing with it.
    "db_comment",
}
JUDGED = {
    *("max_length", "max_digits", "decimal_places", "null", "unique"),
    *("db_index", "db_default", "db_constraint"),
}


def wrong_with_changed_field(name: str, was: AnyField, field: AnyField) -> Iterator[Found]:
    short = name.split(".")[1]
    changes = attributes_changed(was, field)
    if column(short, was) != column(short, field):
        what = f"renames the column of {name}: an older version knows the old name"
        yield Found(f"{what}; add, copy, and contract")
    yield from wrong_with_type(name, was, field)
    yield from wrong_with_null(name, was, field)
    yield from wrong_with_indexes(name, was, field)
    if was.db_default is not NOT_PROVIDED and "db_default" in changes:
        yield Found(f"changes what the database fills in for {name}: {USES_IT}", "contracts")
    if is_constrained(field) and changes - {"db_comment"}:
        yield reads_all_rows(f"changes {name}, for which Django makes its foreign key anew")
    if is_constrained(was) and not is_constrained(field):
        yield Found(f"removes the constraint of the foreign key {name}: {REFUSES}", "harmless")
    if unknown := changes - JUDGED - PYTHON_ONLY:
        what = f"changes {', '.join(sorted(unknown))} of {name}, of which this check knows nothing"
        yield Found(what, "harmless")


def wrong_with_type(name: str, was: AnyField, field: AnyField) -> Iterator[Found]:
    short = name.split(".")[1]
    old, new = column_type(short, was), column_type(short, field)
    if not keeps_rows(old, new):
        what = f"changes the type of {name} from {old} to {new}: all rows are written again under a lock"
        yield Found(f"{what}; add another field, copy, and contract")
    elif old != new and was.unique:
        yield reads_all_rows(f"changes the type of {name}, for which the foreign keys to it are made anew")
    if old.startswith("varchar") and new == "text" and is_indexed(was) and is_indexed(field):
        yield reads_all_rows(f"makes {name} a text, for which its index is made anew (let it be varchar)")
    check_was, check = column_check(short, was), column_check(short, field)
    if check_was and not check:
        yield Found(f"removes the check of {name}: {REFUSES}", "harmless")
    if check and check != check_was:
        yield Found(f"adds a check to {name}: an older version may write rows that break it", "contracts")
        yield reads_all_rows(f"adds a check to {name}")


def wrong_with_null(name: str, was: AnyField, field: AnyField) -> Iterator[Found]:
    if was.null and not field.null:
        yield Found(f"makes {name} NOT NULL: an older version may still write NULL: {USES_IT}", "contracts")
        yield reads_all_rows(f"makes {name} NOT NULL")
    if field.null and not was.null:
        what = f"lets {name} be NULL, which an older version does not expect to read: give it a db_default"
        yield Found(what, "harmless")


def wrong_with_indexes(name: str, was: AnyField, field: AnyField) -> Iterator[Found]:
    if field.unique and not was.unique:
        yield Found(f"makes {name} unique: an older version may write a value twice", "contracts")
        yield reads_all_rows(f"makes {name} unique")
    if was.unique and not field.unique:
        what = f"makes {name} no longer unique: {ON_CONFLICT}"
        yield Found(what, "contracts")
    if has_plain_index(field) and not has_plain_index(was):
        yield Found(f"makes an index of {name}: nobody may write meanwhile; {BY_ITSELF}")
    if is_indexed(was) and not is_indexed(field) and not was.unique:
        yield Found(f"takes away the index of {name}: {USES_IT}", "contracts")


def is_indexed(field: AnyField) -> bool:
    return bool(getattr(field, "db_index", False) or field.unique)


def has_plain_index(field: AnyField) -> bool:
    return is_indexed(field) and not field.unique


def attributes_changed(was: AnyField, field: AnyField) -> set[str]:
    """Those that Django does not know to be of no concern to the database."""
    old, new = attributes(was), attributes(field)
    return {name for name in old.keys() | new.keys() if old.get(name, old) != new.get(name, new)}


def attributes(field: AnyField) -> dict[str, Any]:
    *_, keywords = field.deconstruct()
    return {name: value for name, value in keywords.items() if name not in field.non_db_attrs}
