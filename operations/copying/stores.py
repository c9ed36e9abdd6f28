"""A database as rows in text, read from one state of it and written fast, with a mark while that is
unfinished."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import Context, Decimal
from io import StringIO
from typing import Any, NamedTuple, Protocol

import msgspec
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import models
from django.db.migrations.loader import MigrationLoader

from accounts.models import Account
from core.events.outbox import ControlEvent
from core.process import UNFINISHED
from signals_feed.models import Announcement

# The tables of a database as its own migrations made them, whatever the code is by now.
MigrationName = tuple[str, str]
KINDS = {
    **dict.fromkeys(("CharField", "TextField", "SlugField", "FileField"), "text"),
    **dict.fromkeys(("AutoField", "BigAutoField", "SmallAutoField"), "whole"),
    **dict.fromkeys(("IntegerField", "BigIntegerField", "SmallIntegerField"), "whole"),
    "PositiveIntegerField": "whole",
    "PositiveBigIntegerField": "whole",
    "PositiveSmallIntegerField": "whole",
    "BooleanField": "boolean",
    "DateTimeField": "moment",
    "DateField": "date",
    "DecimalField": "decimal",
    "FloatField": "real",
    "UUIDField": "uuid",
    "JSONField": "json",
    "GenericIPAddressField": "address",
}


class UnknownKind(Exception):
    """A field of a kind that nobody has taught this to carry."""


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
    def key_kind(self) -> str:
        return next(column.kind for column in self.columns if column.name == self.key)


class Schema(NamedTuple):
    migrations: tuple[MigrationName, ...]
    tables: tuple[StoredTable, ...]
    """Each after those that it refers to."""


def unknown_migrations(applied: Iterable[MigrationName]) -> list[MigrationName]:
    """Those that a newer version made, or another program."""
    return sorted(set(applied) - MigrationLoader(None).graph.nodes.keys())


def last_migrations(applied: Iterable[MigrationName]) -> list[MigrationName]:
    """Of each app the last that was applied: from these the others follow."""
    graph, found = MigrationLoader(None).graph, set(applied)
    return sorted(
        name
        for name in found
        if not any(child.key in found and child.key[0] == name[0] for child in graph.node_map[name].children)
    )


def schema_after(applied: Iterable[MigrationName]) -> Schema:
    found = sorted(applied)
    state = MigrationLoader(None).project_state(last_migrations(found))
    return Schema(tuple(found), tuple(in_order(list(state.apps.get_models(include_auto_created=True)))))


def in_order(known: Sequence[type[models.Model]]) -> list[StoredTable]:
    waiting = {
        model._meta.db_table: model for model in known if model._meta.managed and not model._meta.proxy
    }
    ordered: list[StoredTable] = []
    done: set[str] = set()
    while waiting:
        ready = sorted(name for name, model in waiting.items() if needs(model) - done <= {name})
        if not ready:
            raise UnknownKind(f"These tables refer to each other in a circle: {', '.join(sorted(waiting))}.")
        for name in ready:
            ordered.append(table_of(waiting.pop(name)))
        done.update(ready)
    return ordered


def needs(model: type[models.Model]) -> set[str]:
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return {each._meta.db_table for each in related if isinstance(each, type)}


def table_of(model: type[models.Model]) -> StoredTable:
    meta = model._meta
    columns = tuple(column_of(field) for field in meta.concrete_fields)
    return StoredTable(meta.db_table, str(meta.pk.column), columns)


def column_of(field: models.Field[object, object]) -> Column:
    told: models.Field[object, object] = field
    while isinstance(told, models.ForeignKey):
        told = told.target_field
    kind = KINDS.get(told.get_internal_type())
    if kind is None:
        raise UnknownKind(f"{field.model._meta.db_table}.{field.column} is a {told.get_internal_type()}.")
    places = told.decimal_places if isinstance(told, models.DecimalField) else 0
    return Column(str(field.column), kind, places or 0)


# Values as text: one form for each, whichever database it was read from. It is the text form of
# PostgreSQL's COPY: columns apart by tabs, `\N` for none, backslashes before what would be misread.
NONE = r"\N"
ESCAPES = {"\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
MEANT = {escape[1]: letter for letter, escape in ESCAPES.items()}
ESCAPED = re.compile(r"\\(.)")
TO_ESCAPE = re.compile(r"[\\\b\f\n\r\t\v]")

# SQLite keeps decimals as binary fractions, of which as many digits count.
SQLITE_DIGITS = 15
# From here on a binary fraction is a whole number, and PostgreSQL writes it as one.
WHOLE_FROM = 1e16


def escaped(text: str) -> str:
    return TO_ESCAPE.sub(lambda found: ESCAPES[found.group()], text)


def unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: MEANT.get(found.group(1), found.group(1)), text)


def fields_of(line: str) -> list[str | None]:
    fields = line.split("\t")
    if "\\" not in line:
        return list(fields)
    return [None if field == NONE else unescaped(field) if "\\" in field else field for field in fields]


def plain_json(text: str) -> str:
    """Keys in order and without spaces, because PostgreSQL keeps neither as they were written."""
    value = json.loads(text, parse_float=_fraction)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _fraction(text: str) -> float | int:
    value = float(text)
    return int(value) if abs(value) >= WHOLE_FROM else value


def plain_real(text: str | float) -> str:
    return repr(float(text))


def plain_decimal(value: float | int | str | None, places: int) -> str | None:
    """As Django reads it from SQLite: what a binary fraction adds after its digits is not part of it."""
    if value is None:
        return None
    if isinstance(value, float):
        value = Context(prec=SQLITE_DIGITS).create_decimal_from_float(value)  # type: ignore[assignment]
    exact = Decimal(value).quantize(Decimal(1).scaleb(-places), context=Context(prec=60))
    return f"{exact + 0:f}"


def digits_of(text: str) -> int:
    """How many count of a decimal in its text form."""
    return len(text.lstrip("-").replace(".", "").strip("0"))


def plain_moment(text: str | None) -> str | None:
    """Of SQLite's text, which leaves out what is nought."""
    if text is None:
        return None
    whole, _, fraction = text.removesuffix("+00:00").replace("T", " ").partition(".")
    return f"{whole}.{fraction:0<6}"


# What is made plain after PostgreSQL wrote it as text: the others it writes so already.
AFTER_POSTGRESQL: dict[str, Callable[[str], str]] = {"json": plain_json, "real": plain_real}


# How a database's address is read; the settings know.
class Addresses:
    read: Callable[[str], dict[str, Any]]


addresses = Addresses()


Key = str | None
"""Of the last row that was read or written, as text; None before the first."""


class Refused(Exception):
    """What cannot be carried as it is; the message is for the operator."""


class Store(Protocol):
    vendor: str
    place: str
    """What database it is, for people: without a password."""
    a_minute_ago: str
    """In its own language."""

    def snapshot(self) -> AbstractContextManager[None]:
        """What is read in it is of one moment, whatever is written meanwhile."""

    def writing(self) -> AbstractContextManager[None]:
        """One transaction, in which triggers are silent."""

    def names(self) -> set[str]:
        """Of all its tables."""

    def ask(self, question: str) -> list[tuple[object, ...]]: ...

    def tell(self, statement: str) -> None: ...

    def count(self, table: StoredTable) -> int: ...

    def read(self, table: StoredTable, after: Key = None, limit: int | None = None) -> Iterator[bytes]:
        """Lines in the order of the key."""

    def months(self, table: StoredTable, column: str, where: str) -> list[str]:
        """Those that a moment of a row falls into, such as 2026-11."""

    def write(self, table: StoredTable, lines: Iterable[bytes]) -> None: ...

    def empty(self, tables: Iterable[StoredTable]) -> None: ...

    def numbers(self) -> dict[str, int]:
        """The last that each table gave to a row, whether the row is still there or not."""

    def number_after(self, given: Mapping[str, int]) -> None:
        """Each table gives the next row a number after its rows, what it gave before, and `given`."""

    def close(self) -> None: ...


class Digest(NamedTuple):
    rows: int
    sha256: str


def digest(lines: Iterable[bytes]) -> Digest:
    hashed, rows = hashlib.sha256(), 0
    for line in lines:
        hashed.update(line)
        rows += 1
    return Digest(rows, hashed.hexdigest())


def quoted(name: str) -> str:
    return f'"{name}"'


def names_of(table: StoredTable) -> str:
    return ", ".join(quoted(column.name) for column in table.columns)


# What stands in a database from the first change until all of a copy is there and verified. Meanwhile
# nobody starts on it.
Say = Callable[[str], None]
DESPITE_LEDGER = "--despite-ledger"
# Numbers of rows that outlive them: no foreign key holds the rows there.
NAMED_ELSEWHERE = (
    (Account, ControlEvent, "account_id"),
    (ControlEvent, Announcement, "position"),
)


class Unfinished(msgspec.Struct):
    source: str = ""
    """Of a move. A restore has none, because it begins anew."""
    numbers: dict[str, int] = {}
    """The last that each table gave to a row before its rows were deleted."""
    done: dict[str, int] = {}
    """Rows of each table."""
    last: dict[str, Key] = {}


def found(store: Store) -> Unfinished | None:
    if UNFINISHED not in store.names():
        return None
    rows = store.ask(f"SELECT what FROM {UNFINISHED}")  # noqa: S608 - a name of our own
    return msgspec.json.decode(str(rows[0][0]), type=Unfinished) if rows else Unfinished()


def note(store: Store, unfinished: Unfinished) -> None:
    """In the transaction of what it tells of."""
    text = msgspec.json.encode(unfinished).decode().replace("'", "''")
    store.tell(f"CREATE TABLE IF NOT EXISTS {UNFINISHED} (what text)")
    store.tell(f"DELETE FROM {UNFINISHED}")  # noqa: S608 - a name of our own
    store.tell(f"INSERT INTO {UNFINISHED} VALUES ('{text}')")  # noqa: S608 - quoted


def numbers_given(store: Store) -> dict[str, int]:
    """By the database as it is, and as it was before its rows were deleted."""
    unfinished = found(store)
    return greater(store.numbers(), unfinished.numbers if unfinished else {})


def greater(*given: Mapping[str, int]) -> dict[str, int]:
    """Of each table the greatest number."""
    return {table: max(each.get(table, 0) for each in given) for table in set().union(*given)}


class Ending(NamedTuple):
    """What must hold of a copy before anybody starts on it."""

    numbers: Mapping[str, int]
    """Those that were given, here or where the rows come from."""
    head: tuple[int, str]
    """Position and hash of the ledger's last entry."""
    despite_ledger: bool


def finish(store: Store, ending: Ending, say: Say) -> None:
    """Repeated, it does the same again."""
    store.number_after(ending.numbers)
    say("Migrating to this version.")
    # It also puts up the triggers that guard the ledger.
    call_command("migrate", verbosity=0, interactive=False)
    # The columns that name them may be new.
    store.number_after(numbers_named(store))
    check_ledger(ending, say)
    store.tell(f"DROP TABLE {UNFINISHED}")


def numbers_named(store: Store) -> dict[str, int]:
    last = {}
    for model, naming, column in NAMED_ELSEWHERE:
        question = f"SELECT coalesce(max({column}), 0) FROM {naming._meta.db_table}"  # noqa: S608 - names of our own
        last[model._meta.db_table] = int(str(store.ask(question)[0][0]))
    return last


def check_ledger(ending: Ending, say: Say) -> None:
    position, hash_ = ending.head
    noted, said = [f"--head={position}:{hash_}"] if position else [], StringIO()
    try:
        call_command("verify_ledger", *noted, stdout=said)
    except CommandError as fault:
        if not ending.despite_ledger:
            way_out = f"Nothing starts on this copy, unless {DESPITE_LEDGER} finishes it as it is."
            raise Refused(f"{fault} {way_out}") from None
        say(str(fault))
    else:
        say(said.getvalue().strip())
