"""Titles that tell the same story, whoever signs them and however they are set."""

from __future__ import annotations

import re
from collections import defaultdict

from .addresses import digest

WORD = re.compile(r"(?:(?<!\w)[+−-](?=\d))?[^\W_]+(?:[.,'’/-][^\W_]+)*")
# "… - Reuters", "… | Kitco News": who says it is not what is said.
SIGNATURE = re.compile(r"\s[-–—|]\s(?!.*\s[-–—|]\s)(?P<who>[^-–—|]{2,40})$")
SIGNATURE_WORDS = 3
# Else it may be the end of the story: “… - Tokyo Up”.
HOUSE = re.compile(
    r"(?:^|\s)(?:(?:news|times|post|journal|finance|street|today|daily|herald|tribune|insider|review|wire|press|media|tv"
    r"|radio|magazine|agency|telegraph|guardian|bulletin|gazette|observer|report|asia|europe|live|network|business)"
    r"|reuters|bloomberg|cnbc|cnn|bbc|ap|afp|dpa|wsj|ft|fxstreet|forexlive|dailyfx|marketwatch|kitco|coindesk|cointelegraph|decrypt"
    r"|benzinga|barron's|forbes|fortune|axios|politico|nikkei|xinhua|tass|yahoo|investopedia|teletrader|kyodo|economist)$"
    r"|\.[a-z]{2,6}$"
)
SPELT = str.maketrans({"-": " ", "/": " ", "’": "'"})
# All else decides what happened: rejects for approves, bad for good, French for German, by for to.
# A story that is told twice is rejected with a key; one that was taken for another is lost without a word.
SAYS_NOTHING = frozenset(("a", "an", "the"))
WITHIN_MS = 48 * 3_600_000

Words = tuple[str, ...]


def words_of(title: str) -> Words:
    signature = SIGNATURE.search(title)
    if signature and is_a_name(signature["who"]):
        title = title[: signature.start()]
    return tuple(WORD.findall(title.casefold()))


def is_a_name(text: str) -> bool:
    """Of a house that signs what it tells."""
    return len(text.split()) <= SIGNATURE_WORDS and HOUSE.search(text.casefold().strip()) is not None


def title_key(title: str) -> str:
    """Equal for titles that differ in case, punctuation or who signs."""
    return digest(" ".join(words_of(title)))


def told_by(words: Words) -> Words:
    """What is said, without how it is written: U.S. and US, three-week and three week, ’ and '."""
    signed = (f"−{word[1:]}" if word[0] == "-" else word for word in words)
    parts = " ".join(signed).translate(SPELT).split()
    plain = [part.replace(".", "") if "." in part and not has_digit(part) else part for part in parts]
    return tuple(part for part in plain if part not in SAYS_NOTHING)


def has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def are_near(one: Words, other: Words) -> bool:
    """The same in all that decides what happened, in the same order."""
    return told_by(one) == told_by(other)


class KnownTitles:
    def __init__(self) -> None:
        self._times_ms: defaultdict[Words, list[int]] = defaultdict(list)

    def add(self, title: str, at_ms: int) -> None:
        self._times_ms[told_by(words_of(title))].append(at_ms)

    def has_near(self, title: str, at_ms: int) -> bool:
        """Whether the same was told within 48 hours. Of a title without words nothing is known."""
        told = told_by(words_of(title))
        return bool(told) and any(abs(at_ms - at) <= WITHIN_MS for at in self._times_ms.get(told, ()))
