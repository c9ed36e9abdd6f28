"""Titles as the model reads them: plain lower-case words, numbers without their digits."""

from __future__ import annotations

import re
import unicodedata

# The longest title of an item is 300; what is longer is no headline and is read as far as this.
LONGEST = 400
PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": " ", "—": " ", "−": "-", "\u200b": ""})
WORD = re.compile(r"[-+]?[$£€¥]?\d[\d,.]*|[^\W\d_]+(?:[/&'.][^\W\d_]+)*|%")
NUMBER = "0"


def plain(title: str) -> str:
    """One form of what looks alike, in lower case, and no longer than a title can be."""
    return unicodedata.normalize("NFKC", title[:LONGEST]).translate(PLAIN).lower()


def words(text: str) -> list[str]:
    """Of a plain text. `U.S.` and `it's` are `us` and `it`; a number is `0`."""
    found = []
    for word in WORD.findall(text):
        if word[-1].isdigit() or word[-1] in ",.":
            found.append(NUMBER)
        else:
            found.append(word.removesuffix("'s").replace(".", ""))
    return found
