"""The names by which headlines call what is traded and what moves it: names.csv.

A name without a symbol tells only the category; one without either means something else (a gold medal)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("names.csv")


class Name(NamedTuple):
    category: str
    symbol: str


def read() -> Iterator[tuple[str, Name]]:
    with TABLE.open(newline="") as lines:
        for row in csv.DictReader(lines):
            for name in row["names"].split("; "):
                yield name, Name(row["category"], row["symbol"])


NAMES = dict(read())
LONGEST_NAME = max(len(name.split()) for name in NAMES)
