"""Labelled headlines: our own, and SEntFiN's where its file is given."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

BEARISH, NEUTRAL, BULLISH = -1, 0, 1
LABELS = {"bearish": BEARISH, "neutral": NEUTRAL, "bullish": BULLISH}
NAMES = {value: name for name, value in LABELS.items()}
FOLDER = Path(__file__).parent.parent
OWN, UNSEEN = FOLDER / "headlines.csv", FOLDER / "unseen.csv"
# The column is no JSON: quotes of both kinds, apostrophes within.
DECISION = re.compile(r":\s*['\"](positive|negative|neutral)['\"]")
DECISIONS = {"positive": BULLISH, "negative": BEARISH, "neutral": NEUTRAL}


class BadData(Exception):
    """The file cannot be used; the sentence says why."""


class Example(NamedTuple):
    title: str
    label: int
    category: str = ""
    style: str = ""


def read_own(path: Path = OWN) -> list[Example]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Example(row["title"], LABELS[row["label"]], row["category"], row["style"]) for row in rows]


def read_sentfin(path: Path) -> list[Example]:
    """Headlines whose entities have one label; what is good for one and bad for another is left out."""
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
    examples = [Example(title, DECISIONS[next(iter(found))]) for title, found in titles if len(found) == 1]
    if not examples:
        raise BadData(f"{path} has no headline with one label.")
    return examples
