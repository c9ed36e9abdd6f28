"""Turns the entries of a feed into stories: when they happened, what they are about, and which are the same.

What a title is about follows from the names in it (names.csv). A name without a symbol gives only the
category; one without either means something else, such as a gold medal."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from news.addresses import digest, story_key

from .parsing import FeedEntry

WORD = re.compile(r"(?:(?<!\w)[+−-](?=\d))?[^\W_]+(?:[.,'’/-][^\W_]+)*")
# "… - Reuters", "… | Kitco News": the publisher is not part of the story.
SIGNATURE = re.compile(r"\s[-–—|]\s(?!.*\s[-–—|]\s)(?P<who>[^-–—|]{2,40})$")
SIGNATURE_WORDS = 3
# Anything else may be the end of the title: “… - Tokyo Up”.
PUBLISHER = re.compile(
    r"(?:^|\s)(?:(?:news|times|post|journal|finance|street|today|daily|herald|tribune|insider|review|wire|press|media|tv"
    r"|radio|magazine|agency|telegraph|guardian|bulletin|gazette|observer|report|asia|europe|live|network|business)"
    r"|reuters|bloomberg|cnbc|cnn|bbc|ap|afp|dpa|wsj|ft|fxstreet|forexlive|dailyfx|marketwatch|kitco|coindesk|cointelegraph|decrypt"
    r"|benzinga|barron's|forbes|fortune|axios|politico|nikkei|xinhua|tass|yahoo|investopedia|teletrader|kyodo|economist)$"
    r"|\.[a-z]{2,6}$"
)
SPELT = str.maketrans({"-": " ", "/": " ", "’": "'"})
# Every other word may matter: rejects or approves, bad or good, French or German, by or to.
# Staff reject a duplicate with one key, but a story that is mistaken for another is lost silently.
ARTICLES = frozenset(("a", "an", "the"))
TOLD_ANEW_AFTER = timedelta(hours=48)
# A feed may keep stories for months; older than this, they are no longer news when first seen.
OLDEST = timedelta(days=7)
NO_SUBJECT = "macro"
Words = tuple[str, ...]


class Story(NamedTuple):
    entry: FeedEntry
    published_at: datetime
    category: str
    symbols: tuple[str, ...]
    is_recognised: bool
    """Whether its title or its source says what it is about."""
    title_key: str
    address_key: str


def read_stories(
    entries: Iterable[FeedEntry], *, polled_at: datetime, hint: str, known: Container[str]
) -> tuple[list[Story], int]:
    """The stories, and how many entries are too old to be news. `hint` is the category of the source."""
    dated = [(entry, published_at(entry.published_at, polled_at)) for entry in entries]
    fresh = [(entry, at) for entry, at in dated if at is not None]
    keys = [story_key(entry.address) for entry, _ in fresh]
    times = Counter(keys)
    stories = []
    for (entry, at), key in zip(fresh, keys, strict=True):
        subjects = find_subjects(entry.title, known)
        stories.append(
            Story(
                entry=entry,
                published_at=at,
                category=category_of(subjects, hint),
                symbols=subjects.symbols,
                is_recognised=bool(subjects.category or hint),
                title_key=title_key(entry.title),
                # An address that several stories of a feed share leads to a page about all of them.
                address_key=key if times[key] == 1 else "",
            )
        )
    return stories, len(dated) - len(fresh)


def category_of(subjects: Subjects, hint: str) -> str:
    return subjects.category or hint or NO_SUBJECT


def published_at(claimed: datetime | None, polled_at: datetime) -> datetime | None:
    """The present if the date is missing or in the future; None for a story that is too old."""
    if claimed is None:
        return polled_at
    return None if claimed < polled_at - OLDEST else min(claimed, polled_at)


NAME_WORD = re.compile(r"[^\W_]+(?:[&.][^\W_]+)*")
CURRENCY_PAIR = re.compile(r"\b([A-Z]{3})[/-]?([A-Z]{3})T?\b")
MARKET_OF = {"XAU": "gold", "XAG": "gold", "BTC": "crypto", "ETH": "crypto", "SOL": "crypto"}

# An asset says more about the subject of a title than the data that moved it; a pair settles it.
CATEGORY_WEIGHTS = {"macro": 1.5}
ASSET_WEIGHT, PAIR_WEIGHT = 2.0, 6.0
MOST_SYMBOLS = 6


class Subjects(NamedTuple):
    category: str
    """Empty if nothing is recognised."""
    symbols: tuple[str, ...]


def find_subjects(title: str, known: Container[str]) -> Subjects:
    """Only known symbols are returned, in the order of the title."""
    votes: defaultdict[str, float] = defaultdict(float)
    symbols: list[str] = []
    paired, rest = _pairs(title, known)
    for symbol, category in paired:
        votes[category] += PAIR_WEIGHT
        symbols.append(symbol)
    for place, name in enumerate(_names(rest), start=1):
        # A headline begins with its subject and gives the reasons later.
        votes[name.category] += CATEGORY_WEIGHTS.get(name.category, ASSET_WEIGHT) / place
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

    return found, CURRENCY_PAIR.sub(take, title)


class Name(NamedTuple):
    category: str
    symbol: str


def _names(title: str) -> Iterator[Name]:
    """Finds the longest name at each place; each word belongs to one name at most."""
    words = tuple(word.removesuffix("'s").removesuffix("’s") for word in NAME_WORD.findall(title.casefold()))
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


def title_key(title: str) -> str:
    """Equal for titles that differ only in case, punctuation or publisher."""
    return digest(" ".join(words_of(title)))


def words_of(title: str) -> Words:
    signature = SIGNATURE.search(title)
    if signature and is_publisher(signature["who"]):
        title = title[: signature.start()]
    return tuple(WORD.findall(title.casefold()))


def is_publisher(text: str) -> bool:
    return len(text.split()) <= SIGNATURE_WORDS and PUBLISHER.search(text.casefold().strip()) is not None


def normalised(words: Words) -> Words:
    """Removes differences of spelling: U.S. and US, three-week and three week, ’ and '."""
    signed = (f"−{word[1:]}" if word[0] == "-" else word for word in words)
    parts = " ".join(signed).translate(SPELT).split()
    plain = [part.replace(".", "") if "." in part and not has_digit(part) else part for part in parts]
    return tuple(part for part in plain if part not in ARTICLES)


def has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


class SeenTitles:
    """Two titles are near if they have the same words in the same order, apart from articles and spelling."""

    def __init__(self, seen: Iterable[tuple[str, datetime]] = ()) -> None:
        self._times: defaultdict[Words, list[datetime]] = defaultdict(list)
        for title, at in seen:
            self.add(title, at)

    def add(self, title: str, at: datetime) -> None:
        self._times[normalised(words_of(title))].append(at)

    def has_near(self, title: str, at: datetime) -> bool:
        """Whether the same title appeared within 48 hours. A title without words is near to none."""
        words = normalised(words_of(title))
        return bool(words) and any(abs(at - each) <= TOLD_ANEW_AFTER for each in self._times.get(words, ()))
