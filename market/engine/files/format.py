"""What every format of a file of ticks says of itself. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from market.prices.ticks import Tick


class BadFile(Exception):
    """A sentence for people: what is wrong with a file, and the way out."""


class Subject(NamedTuple):
    """What the reader of a file must be told, because the file does not say it."""

    symbol: str
    point: float = 0.00001
    """The unit of whole-number prices."""
    path: str = ""


class Place(NamedTuple):
    """Where in a file a line begins: bytes before it, and its number."""

    offset: int = 0
    line: int = 1


class Batch(NamedTuple):
    ticks: list[Tick]
    lines: Sequence[int]
    """The line of each tick, counted from 1."""
    malformed: Sequence[int] = ()
    """Lines that make no tick."""
    place: Place = Place()


class Format(NamedTuple):
    name: str
    sample: str
    """One line of it, for people."""
    matches: Callable[[bytes, str], bool]
    """Whether a file that begins with these bytes, and has this path, is one."""
    read: Callable[[Iterable[bytes], Subject, Place], Iterator[Batch]]
    """From blocks of bytes, each of whole lines; the place is that of the first."""
    holds_trades: bool = False
