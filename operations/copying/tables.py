"""The tables of a database, and their rows as lines of text that are the same on SQLite and PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal
from graphlib import TopologicalSorter
from itertools import islice
from typing import IO, Any, NamedTuple

import msgspec
from django.db import models
from django.db.migrations.loader import MigrationLoader

MigrationName = tuple[str, str]
KINDS: dict[type[models.Field[Any, Any]], str] = {
    **dict.fromkeys((models.CharField, models.TextField, models.FileField), "text"),
    models.IntegerField: "whole",
    models.BooleanField: "boolean",
    # Before a date, because it is one of them.
    models.DateTimeField: "moment",
    models.DateField: "date",
    models.DecimalField: "decimal",
    models.FloatField: "real",
    models.UUIDField: "uuid",
    models.JSONField: "json",
    models.GenericIPAddressField: "address",
}


class UnknownKind(Exception):
    """A field of a kind that has no text form here."""


class Column(msgspec.Struct, frozen=True):
    name: str
    kind: str
    places: int = 0
    """Of a decimal: digits after the point."""


class StoredTable(msgspec.Struct, frozen=True):
    name: str
    key: str
    columns: tuple[Column, ...]

    @property
    def key_at(self) -> int:
        return [column.name for column in self.columns].index(self.key)


class Schema(NamedTuple):
    migrations: tuple[MigrationName, ...]
    tables: tuple[StoredTable, ...]
    """Each after those that it refers to."""


def unknown_migrations(applied: Iterable[MigrationName]) -> list[MigrationName]:
    """Those of a newer version, or of another program."""
    return sorted(set(applied) - MigrationLoader(None).graph.nodes.keys())


def last_migrations(applied: Iterable[MigrationName]) -> list[MigrationName]:
    """The last that was applied of each app; the others follow from these."""
    graph, found = MigrationLoader(None).graph, set(applied)
    return sorted(
        name
        for name in found
        if not any(child.key in found and child.key[0] == name[0] for child in graph.node_map[name].children)
    )


def schema_after(applied: Iterable[MigrationName]) -> Schema:
    """The tables as these migrations made them, whatever the models are now."""
    found = sorted(applied)
    apps = MigrationLoader(None).project_state(last_migrations(found)).apps
    stored = {
        model._meta.db_table: model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
    }
    sorter = TopologicalSorter({name: needs(model) - {name} for name, model in stored.items()})
    sorter.prepare()
    ordered: list[str] = []
    while ready := sorted(sorter.get_ready()):
        ordered += ready
        sorter.done(*ready)
    return Schema(tuple(found), tuple(table_of(stored[name]) for name in ordered))


def needs(model: type[models.Model]) -> set[str]:
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return {each._meta.db_table for each in related if isinstance(each, type)}


def table_of(model: type[models.Model]) -> StoredTable:
    meta = model._meta
    return StoredTable(meta.db_table, str(meta.pk.column), tuple(map(column_of, meta.concrete_fields)))


def column_of(field: models.Field[Any, Any]) -> Column:
    stored = field
    while isinstance(stored, models.ForeignKey):
        stored = stored.target_field
    kind = next((kind for one, kind in KINDS.items() if isinstance(stored, one)), None)
    if kind is None:
        raise UnknownKind(f"{field.model._meta.db_table}.{field.column} is a {stored.get_internal_type()}.")
    places = stored.decimal_places if isinstance(stored, models.DecimalField) else 0
    return Column(str(field.column), kind, places or 0)


# A line is as PostgreSQL's COPY writes it: columns separated by tabs, `\N` for NULL, backslashes before
# characters that would be misread.
NONE = r"\N"
ESCAPES = {"\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
LETTERS = {escape[1]: letter for letter, escape in ESCAPES.items()}
ESCAPED = re.compile(r"\\(.)")
TO_ESCAPE = re.compile(r"[\\\b\f\n\r\t\v]")

# SQLite stores decimals as binary fractions, which are exact to this many digits.
SQLITE_DIGITS = 15
# From here on a binary fraction is a whole number, and PostgreSQL writes it as one.
WHOLE_FROM = 1e16


def escaped(text: str) -> str:
    return TO_ESCAPE.sub(lambda found: ESCAPES[found.group()], text) if TO_ESCAPE.search(text) else text


def unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: LETTERS.get(found.group(1), found.group(1)), text)


def fields_of(line: str) -> list[str | None]:
    fields = line.split("\t")
    if "\\" not in line:
        return list(fields)
    return [None if field == NONE else unescaped(field) if "\\" in field else field for field in fields]


def plain_json(text: str) -> str:
    """Sorted keys and no spaces, because PostgreSQL keeps neither as they were written."""
    value = json.loads(text, parse_float=_fraction)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _fraction(text: str) -> float | int:
    value = float(text)
    return int(value) if abs(value) >= WHOLE_FROM else value


def plain_real(value: str | float) -> str:
    return repr(float(value))


def decimal_form(places: int) -> Callable[[float | int | str], str]:
    """As Django reads it from SQLite, without the digits that a binary fraction adds. It runs often."""
    limit, short = 10 ** (SQLITE_DIGITS - places), f"%.{places}f"

    def form(value: float | int | str) -> str:
        if isinstance(value, str):
            return value
        if abs(value) < limit:
            return short % (value + 0.0)
        # A whole number is exact.
        context = Context(prec=SQLITE_DIGITS) if isinstance(value, float) else Context(prec=60)
        return f"{context.create_decimal(Decimal(value)):.{places}f}"

    return form


def digits_of(text: str) -> int:
    """The significant digits of a decimal in its text form."""
    return len(text.lstrip("-").replace(".", "").strip("0"))


def plain_moment(text: str) -> str:
    """Both databases leave out zeros of the fraction; PostgreSQL adds the time zone, which is UTC."""
    whole, _, fraction = text.partition("+")[0].replace("T", " ").partition(".")
    return f"{whole}.{fraction:0<6}"


# How a value becomes text, from what SQLite returns or PostgreSQL's COPY writes.
FORMS: dict[str, Callable[[Any], str]] = {
    "text": escaped,
    "boolean": {1: "t", 0: "f", "t": "t", "f": "f"}.__getitem__,
    "moment": plain_moment,
    "real": plain_real,
    "uuid": lambda text: text.replace("-", ""),
    "json": lambda text: escaped(plain_json(text)),
}


def form_of(column: Column) -> Callable[[Any], str]:
    if column.kind == "decimal":
        return decimal_form(column.places)
    return FORMS.get(column.kind, str)


def quoted(name: str) -> str:
    return f'"{name}"'


def names_of(table: StoredTable) -> str:
    return ", ".join(quoted(column.name) for column in table.columns)


class Digest(NamedTuple):
    rows: int
    sha256: str


LINES_AT_ONCE = 500


def together(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Pieces of several lines, because writing single lines is slow, each with its number of lines."""
    waiting = iter(lines)
    while some := list(islice(waiting, LINES_AT_ONCE)):
        yield len(some), b"".join(some)


def digest(lines: Iterable[bytes], out: IO[bytes] | None = None) -> Digest:
    """Of the lines, which are also written to `out`."""
    hashed, rows = hashlib.sha256(), 0
    for count, some in together(lines):
        hashed.update(some)
        rows += count
        if out is not None:
            out.write(some)
    return Digest(rows, hashed.hexdigest())
