"""The kinds of words, such as movements, assets and things that are bad when they rise (lexicon.txt)."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("lexicon.txt")
LONGEST_PHRASE = 5
CODES = "usd|eur|gbp|jpy|chf|aud|nzd|cad|cnh|cny|inr|mxn|sek|nok|zar|try|brl|krw|sgd|xau|xag|btc|eth"
PAIR = re.compile(rf"({CODES})/?(?:{CODES})")
NOTHING = ""


class WordKind(NamedTuple):
    name: str
    start: int
    end: int


@cache
def lexicon() -> dict[str, str]:
    kinds: dict[str, str] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(":")
            for word in words.split():
                if kinds.setdefault(word.replace("_", " "), name) != name:
                    raise ValueError(f"{word!r} is of two kinds: {kinds[word.replace('_', ' ')]} and {name}")
    return kinds


@cache
def phrase_starts() -> frozenset[str]:
    return frozenset(phrase.split()[0] for phrase in lexicon() if " " in phrase)


def kinds(words: Sequence[str]) -> Iterator[WordKind]:
    """The kinds of words in a title, in order; the longest phrase wins."""
    at = 0
    while at < len(words):
        name, length = _phrase(words, at) if words[at] in phrase_starts() else (NOTHING, 0)
        if not name:
            name, length = kind_of(words[at]), 1
        if name:
            yield WordKind(name, at, at + length)
        at += length


def _phrase(words: Sequence[str], at: int) -> tuple[str, int]:
    known = lexicon()
    for length in range(min(LONGEST_PHRASE, len(words) - at), 1, -1):
        if name := known.get(" ".join(words[at : at + length])):
            return name, length
    return NOTHING, 0


@lru_cache(maxsize=8192)
def kind_of(word: str) -> str:
    """The kind of a word or of its base form; for a pair of currencies, the kind of the base."""
    known = lexicon()
    if pair := PAIR.fullmatch(word):
        return known.get(pair[1], NOTHING)
    return next((known[form] for form in forms(word) if form in known), NOTHING)


def forms(word: str) -> Iterator[str]:
    yield word
    for ending in ("s", "es", "d", "ed", "ing"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            stem = word.removesuffix(ending)
            yield stem
            if ending == "ing":
                yield stem + "e"
            if ending in ("ed", "ing") and stem[-1] == stem[-2]:
                yield stem[:-1]
