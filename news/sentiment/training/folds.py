"""Which examples are held out together: near-duplicates never stand on both sides."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Sequence

SHINGLE = 5
ALIKE = 0.5
# A shingle of more headlines than this is a common word and brings nobody together.
COMMON = 60


def shingles(title: str) -> frozenset[str]:
    text = f" {' '.join(re.findall(r'[a-z]+|0', re.sub(r'[0-9]+', '0', title.lower())))} "
    return frozenset(text[at : at + SHINGLE] for at in range(max(1, len(text) - SHINGLE + 1)))


def groups(titles: Sequence[str]) -> list[int]:
    """For each title the first that it is like, directly or through others (Jaccard of shingles)."""
    sets = [shingles(title) for title in titles]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, found in enumerate(sets):
        for shingle in found:
            holders[shingle].append(number)
    leaders = list(range(len(titles)))
    for number, found in enumerate(sets):
        near = {other for s in found if len(holders[s]) <= COMMON for other in holders[s] if other < number}
        for other in near:
            if len(found & sets[other]) >= ALIKE * len(found | sets[other]):
                one, two = leader(leaders, number), leader(leaders, other)
                leaders[max(one, two)] = min(one, two)
    return [leader(leaders, number) for number in range(len(titles))]


def leader(leaders: list[int], number: int) -> int:
    while leaders[number] != number:
        leaders[number] = number = leaders[leaders[number]]
    return number


def folds(titles: Sequence[str], count: int = 5) -> list[int]:
    """The same for the same titles, on any machine."""
    return [zlib.crc32(str(each).encode()) % count for each in groups(titles)]
