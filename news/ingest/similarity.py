"""Titles that tell the same story in nearly the same words."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Set

from .addresses import digest

WORD = re.compile(r"[^\W_]+(?:[.,'’/-][^\W_]+)*")
# "… - Reuters", "… | Kitco News": who says it is not what is said.
SIGNATURE = re.compile(r"\s[-–—|]\s(?!.*\s[-–—|]\s)(?P<who>[^-–—|]{2,40})$")
SIGNATURE_WORDS = 3
# Where titles differ in one of these, they tell different stories, however much else is equal.
DECISIVE_WORDS = """
up down rise rises rose rising fall falls fell falling gain gains gained lose loses lost loss losses
climb climbs climbed drop drops dropped slip slips slipped jump jumps jumped slide slides slid surge surges
plunge plunges rally rallies tumble tumbles firm firms ease eases higher lower high low above below more less
beat beats miss misses cut cuts hike hikes raise raises buy buys sell sells bullish bearish hawkish dovish
bull bear not no never without first second third monday tuesday wednesday thursday friday saturday sunday
"""
DECISIVE = frozenset(DECISIVE_WORDS.split())
ENOUGH_WORDS, ENOUGH_PAIRS = 0.8, 0.5
WITHIN_MS = 48 * 3_600_000

Words = tuple[str, ...]


def words_of(title: str) -> Words:
    signature = SIGNATURE.search(title)
    if signature and len(signature["who"].split()) <= SIGNATURE_WORDS:
        title = title[: signature.start()]
    return tuple(WORD.findall(title.casefold()))


def title_key(title: str) -> str:
    """Equal for titles that differ in case, punctuation or who signs."""
    return digest(" ".join(words_of(title)))


def are_near(one: Words, other: Words) -> bool:
    """Nearly the same words in nearly the same order, and the same in all that decides what happened."""
    if one == other:
        return True
    mine, theirs = set(one), set(other)
    differing = mine ^ theirs
    if any(word in DECISIVE or word[0].isdigit() for word in differing):
        return False
    return share(mine, theirs) >= ENOUGH_WORDS and share(pairs(one), pairs(other)) >= ENOUGH_PAIRS


def pairs(words: Words) -> set[tuple[str, str]]:
    return set(zip(words, words[1:], strict=False))


def share(one: Set[object], other: Set[object]) -> float:
    """Of all that either has, how much both have."""
    return len(one & other) / len(one | other) if one or other else 1.0


class KnownTitles:
    """Finds a near title among many: only those that share one of its rarest words are compared."""

    def __init__(self) -> None:
        self._titles: list[tuple[Words, int]] = []
        self._by_word: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, title: str, at_ms: int) -> None:
        words = words_of(title)
        for word in set(words):
            self._by_word[word].append(len(self._titles))
        self._titles.append((words, at_ms))

    def has_near(self, title: str, at_ms: int) -> bool:
        """Whether nearly the same was told within 48 hours."""
        words = words_of(title)
        found = (self._titles[place] for place in self._candidates(words))
        return any(abs(at_ms - told_ms) <= WITHIN_MS and are_near(words, told) for told, told_ms in found)

    def _candidates(self, words: Words) -> set[int]:
        """At least 0.8 n of n words are shared with a near title, so of any 0.2 n + 1 of them one is."""
        rarest = sorted(set(words), key=lambda word: len(self._by_word.get(word, ())))
        looked_at = rarest[: len(rarest) - math.ceil(ENOUGH_WORDS * len(rarest)) + 1]
        return {place for word in looked_at for place in self._by_word.get(word, ())}
