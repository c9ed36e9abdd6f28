"""A database as rows in text, read from one state of it and written fast."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from .tables import StoredTable

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
