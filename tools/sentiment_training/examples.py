"""Labelled headlines, and which of them are held out together: near-duplicates never stand on both sides."""

from __future__ import annotations

import csv
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BEARISH, NEUTRAL, BULLISH = -1, 0, 1
LABELS = {"bearish": BEARISH, "neutral": NEUTRAL, "bullish": BULLISH}
NAMES = {value: name for name, value in LABELS.items()}
FOLDER = Path(__file__).parent
OWN, UNSEEN = FOLDER / "headlines.csv", FOLDER / "unseen.csv"

# The column is not JSON: it mixes both kinds of quotes, with apostrophes inside.
DECISION = re.compile(r":\s*['\"](positive|negative|neutral)['\"]")
DECISIONS = {"positive": BULLISH, "negative": BEARISH, "neutral": NEUTRAL}


class BadData(Exception):
    """The file cannot be used; the message says why."""


class LabelledHeadline(NamedTuple):
    title: str
    label: int
    category: str = ""
    style: str = ""


def read_own(path: Path = OWN) -> list[LabelledHeadline]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        LabelledHeadline(row["title"], LABELS[row["label"]], row["category"], row["style"]) for row in rows
    ]


def read_sentfin(path: Path) -> list[LabelledHeadline]:
    """Headlines whose entities share one label; those good for one and bad for another are left out."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        titles = [(row["Title"], set(DECISION.findall(row["Decisions"]))) for row in rows]
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror}.") from None
    except (KeyError, TypeError, UnicodeDecodeError, csv.Error):
        raise BadData(
            f"{path} is not SEntFiN.csv: its columns are S No., Title, Decisions and Words."
        ) from None
    examples = [
        LabelledHeadline(title, DECISIONS[next(iter(found))]) for title, found in titles if len(found) == 1
    ]
    if not examples:
        raise BadData(f"{path} has no headline with one label.")
    return examples


SHINGLE = 5
ALIKE = 0.5

# A shingle of more headlines than this is a common word and proves no similarity.
COMMON = 60


def shingles(title: str) -> frozenset[str]:
    text = f" {' '.join(re.findall(r'[a-z]+|0', re.sub(r'[0-9]+', '0', title.lower())))} "
    return frozenset(text[at : at + SHINGLE] for at in range(max(1, len(text) - SHINGLE + 1)))


def groups(titles: Sequence[str]) -> list[int]:
    """For each title the first that it resembles, directly or through others (Jaccard index of shingles)."""
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
    """Deterministic: the same titles give the same folds on any machine."""
    return [zlib.crc32(str(each).encode()) % count for each in groups(titles)]
