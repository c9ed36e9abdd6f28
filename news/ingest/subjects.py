"""What a title is about: its category and its symbols, found by the names that headlines use (names.csv).

A name without a symbol tells only the category; one without either means something else (a gold medal)."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

WORD = re.compile(r"[^\W_]+(?:[&.][^\W_]+)*")
PAIR = re.compile(r"\b([A-Z]{3})[/-]?([A-Z]{3})T?\b")
MARKET_OF = {"XAU": "gold", "XAG": "gold", "BTC": "crypto", "ETH": "crypto", "SOL": "crypto"}

# An asset says more of what a title is about than the data that moved it; a pair says it all.
WEIGHTS = {"macro": 1.5}
ASSET_WEIGHT, PAIR_WEIGHT = 2.0, 6.0
MOST_SYMBOLS = 6


class Subjects(NamedTuple):
    category: str
    """Empty where nothing is recognised."""
    symbols: tuple[str, ...]


def find_subjects(title: str, known: Container[str]) -> Subjects:
    """Of the symbols only the known ones, in the order of the title."""
    votes: defaultdict[str, float] = defaultdict(float)
    symbols: list[str] = []
    paired, rest = _pairs(title, known)
    for symbol, category in paired:
        votes[category] += PAIR_WEIGHT
        symbols.append(symbol)
    for place, name in enumerate(_names(rest), start=1):
        # What a headline is about comes first; why it happened comes after.
        votes[name.category] += WEIGHTS.get(name.category, ASSET_WEIGHT) / place
        if name.symbol in known:
            symbols.append(name.symbol)
    category = max(votes, key=lambda name: votes[name]) if votes else ""
    return Subjects(category, tuple(dict.fromkeys(symbols))[:MOST_SYMBOLS])


def _pairs(title: str, known: Container[str]) -> tuple[list[tuple[str, str]], str]:
    """EUR/USD, EURUSD, BTC-USD, and the title without them."""
    found: list[tuple[str, str]] = []

    def take(match: re.Match[str]) -> str:
        symbol = match[1] + match[2]
        if symbol not in known:
            return match[0]
        found.append((symbol, MARKET_OF.get(match[1], "forex")))
        return " "

    return found, PAIR.sub(take, title)


class Name(NamedTuple):
    category: str
    symbol: str


def _names(title: str) -> Iterator[Name]:
    """The longest name at each place; the words of one are used up by it."""
    words = tuple(word.removesuffix("'s").removesuffix("’s") for word in WORD.findall(title.casefold()))
    place = 0
    while place < len(words):
        length, name = _name_at(words, place)
        if name is not None and name.category:
            yield name
        place += length


def _name_at(words: tuple[str, ...], place: int) -> tuple[int, Name | None]:
    for length in range(min(LONGEST_NAME, len(words) - place), 0, -1):
        name = NAMES.get(" ".join(words[place : place + length]))
        if name is not None:
            return length, name
    return 1, None


TABLE = Path(__file__).with_name("names.csv")


def read_names() -> Iterator[tuple[str, Name]]:
    with TABLE.open(newline="") as lines:
        for row in csv.DictReader(lines):
            for name in row["names"].split("; "):
                yield name, Name(row["category"], row["symbol"])


NAMES = dict(read_names())
LONGEST_NAME = max(len(name.split()) for name in NAMES)
